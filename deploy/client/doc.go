// Package client calls Weir's public HTTP API. It imports no module, so
// that its users see what any client sees.
package client
