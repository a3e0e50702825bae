// Package body reads the body of a request before authentication.
// It touches nothing else of the request.
package body
