// Package httpapi is the base of every module's HTTP API: the router and
// what it does for each request, problem+json errors, lists with
// cursors, small strict JSON bodies, and the server that speaks TLS and
// refuses plain HTTP. It touches requests and responses; it has no
// module, credential or table of its own.
package httpapi
