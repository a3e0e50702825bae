// Package httpapi is the base of every module's HTTP API: the router
// and its work for each request, problem+json errors, lists with
// cursors, small strict JSON bodies, and the server, which demands TLS
// and refuses plain HTTP. It handles requests and responses, and has no
// module, credential or table.
package httpapi
