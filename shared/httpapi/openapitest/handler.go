package openapitest

import (
	"io"
	"net/http"
	"testing"
)

// Handler returns module, and fails the test if an answer, or a
// successful request, differs from the module's own document.
func Handler(t testing.TB, module http.Handler) http.Handler {
	t.Helper()
	return &handler{t, load(t, module), module}
}

type handler struct {
	t         testing.TB
	described *document
	module    http.Handler
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.t.Helper()
	sent, answer := &body{}, &recorder{ResponseWriter: w, answered: &body{}, status: http.StatusOK}
	whole := *r
	whole.Body = newReader(r.Body, sent, func() {})
	h.module.ServeHTTP(answer, &whole)
	answer.answered.ended = true
	if answer.status/100 == 2 {
		_, _ = io.Copy(io.Discard, whole.Body) // a decoder may have stopped before the end
	}
	h.described.check(h.t, exchange{r, sent, answer.status, w.Header(), answer.answered})
}

// A recorder keeps the answer.
type recorder struct {
	http.ResponseWriter
	status   int
	answered *body
}

func (r *recorder) WriteHeader(status int) {
	if status >= http.StatusOK {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(p []byte) (int, error) {
	r.answered.add(p)
	return r.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
