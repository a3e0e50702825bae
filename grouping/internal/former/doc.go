// Package former holds the algorithms that fingerprinted errors before
// grouping.Version, by which the groups that they made go on being found
// (see internal/postgres). Each is a package of its own that imports none of
// today's and never changes, and is deleted as a whole, in a release of its
// own, when no installation comes from it any more: 30 days after the release
// with the next version, and 90 days after it was replaced at the latest.
package former
