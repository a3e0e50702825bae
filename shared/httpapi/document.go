package httpapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
)

// Describe adds a module's description of its API. A gateway answers
// the first path with all modules' parts.
func Describe(router chi.Router, module string, openAPI []byte) {
	router, document := router.With(PublicDocument), Document(openAPI)
	router.Get("/v1/openapi.json", document)
	router.Get("/v1/"+module+"/openapi.json", document)
}

// Document serves a JSON document that rarely changes: it may be cached for
// five minutes, then revalidated by its ETag.
func Document(text []byte) http.HandlerFunc {
	sum := sha256.Sum256(text)
	tag := `"` + hex.EncodeToString(sum[:16]) + `"`
	return func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Type", "application/json")
		header.Set("Cache-Control", "public, max-age=300")
		header.Set("ETag", tag)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(text))
	}
}
