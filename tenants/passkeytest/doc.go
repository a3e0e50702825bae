// Package passkeytest has authenticators for tests of whoever signs members
// in by passkeys. It knows the questions that browsers are put and nothing else.
package passkeytest
