// Package frames finds the frames of HTTP/2 (RFC 9113) in the bytes of
// a connection as they pass, and says what each costs. It copies and
// keeps no payload, and judges no content.
package frames
