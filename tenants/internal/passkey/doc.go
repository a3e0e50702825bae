// Package passkey makes the questions that browsers answer with passkeys (WebAuthn), and checks the answers. It keeps nothing: whoever asks
// keeps the question until its answer, which is given once.
package passkey
