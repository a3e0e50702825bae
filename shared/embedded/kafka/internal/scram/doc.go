// Package scram is the server's side of SCRAM-SHA-512 (RFC 5802), for
// one user. The password is never sent.
package scram
