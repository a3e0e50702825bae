// Package isolation tests that nobody reaches what is not theirs: every
// route of every module, asked by every kind of caller, about its own
// organization and a foreign one. policy_test.go lists who may use which
// route; a route that is not listed fails the tests, and so does a line for
// a route that is gone. It has no code of its own.
package isolation
