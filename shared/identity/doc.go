// Package identity turns the credential of a request into a
// principal, and guards every authenticated route. It looks
// credentials up in memory, where it follows them: no request path
// asks a database or another service who is calling.
package identity
