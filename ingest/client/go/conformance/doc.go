// Package conformance holds the SDK against a server that fails in every way
// that a network and Weir can: whatever happens, each entry is stored once, or
// the SDK says that it was dropped. The suite of all SDKs, client/conformance,
// has what they have in common.
package conformance

import (
	"io"
	"log"
)

// quiet takes what the server says of connections that it cut.
var quiet = log.New(io.Discard, "", 0)
