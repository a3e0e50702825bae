// Package isolation tests that nobody reaches what is not theirs: every
// route of every module, asked by every kind of caller, about its own
// organization and a foreign one, by the lines of policy_test.go, which
// lists who may use which. It has no code of its own.
package isolation
