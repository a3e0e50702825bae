// Package passkey makes the challenges that browsers answer with
// passkeys (WebAuthn), and checks the answers. It keeps nothing: its
// caller keeps a challenge until its one answer.
package passkey
