// Package former holds the algorithms that fingerprinted errors
// before grouping.Version. Groups that they made go on being found
// by their fingerprints (see internal/postgres). Each is a package
// of its own that never changes, and is deleted as a whole, when
// no installation comes from it any more.
package former
