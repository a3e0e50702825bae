// Package body reads the body of a request before it is known who sends it. It touches nothing else of the request.
package body
