// Package former holds the algorithms that fingerprinted errors before grouping.Version. Groups that they made go on being
// found by their fingerprints (see internal/postgres). Nothing here ever changes: it is deleted as a whole, when no
// installation comes from them any more.
package former
