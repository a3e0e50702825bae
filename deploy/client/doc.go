// Package client calls Weir's public HTTP API. It imports no module, so that whatever uses it sees what any client sees.
package client
