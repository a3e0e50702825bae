// Package isolation tests that callers reach only what is theirs: every
// route of every module, called by every kind of principal, about its
// own organization and a foreign one, by the rules in policy_test.go.
// It has no code of its own.
package isolation
