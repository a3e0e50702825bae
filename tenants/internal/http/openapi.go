package http

import (
	_ "embed"
	"net/http"
)

//go:embed openapi.json
var openAPI []byte

// serveOpenAPI answers with this module's part of the description of the whole API.
func serveOpenAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(openAPI)
}
