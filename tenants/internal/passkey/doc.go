// Package passkey makes the questions that browsers answer with passkeys (WebAuthn), and checks the
// answers. It keeps nothing: its caller keeps a question until its one answer.
package passkey
