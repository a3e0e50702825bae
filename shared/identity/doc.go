// Package identity turns the credential of a request into a principal,
// and guards every authenticated route. It looks credentials up in
// memory, where it follows them: no request asks a database or another
// service for its caller.
package identity
