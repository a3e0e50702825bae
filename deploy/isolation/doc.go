// Package isolation proves that nobody gets at what is not theirs: every route of every module, asked by every kind of
// caller, about an organization of its own and about a foreign one. policy_test.go is the list of who may use which route;
// a route that is not on it fails the tests, and so does a line for a route that is gone. It has no code of its own.
package isolation
