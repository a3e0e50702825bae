// Package passkey makes and verifies challenges for passkeys (WebAuthn).
// It stores nothing: its caller stores a challenge until its one answer.
package passkey
