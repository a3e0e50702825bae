// Package passkeytest has authenticators for tests of sign-ins
// by passkeys. It knows only the challenges that browsers get.
package passkeytest
