package openapitest

import (
	"io"
	"net/http"
	"sync"
	"testing"
)

// Remote returns next, for a process that may not run yet, and fails
// the test as Handler does. It gets the document with the first answer;
// if the process ends before, it asks again later.
func Remote(t testing.TB, next http.RoundTripper) http.RoundTripper {
	r := &remote{t: t, next: next}
	t.Cleanup(r.expectChecks)
	return r
}

type remote struct {
	t    testing.TB
	next http.RoundTripper

	mu        sync.Mutex
	described *document // nil: not known yet
	answers   int
}

func (r *remote) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if described := r.document(request); described != nil {
		follow(r.t, described, request, response)
	}
	return response, nil
}

// document returns that of the process that answers the request; nil if
// there is none yet.
func (r *remote) document(request *http.Request) *document {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers++
	if r.described != nil {
		return r.described
	}
	text := r.fetch(request)
	if text == nil {
		return nil
	}
	described, err := parsed(request.Context(), text)
	if err != nil {
		r.t.Errorf("%s: %v", documentPath, err)
		return nil
	}
	r.described = described
	return described
}

// fetch asks the process that answers the request for its document; nil
// if there is none now.
func (r *remote) fetch(request *http.Request) []byte {
	where := *request.URL
	where.Path, where.RawQuery = documentPath, ""
	ask, err := http.NewRequestWithContext(request.Context(), http.MethodGet, where.String(), nil)
	if err != nil {
		return nil
	}
	response, err := r.next.RoundTrip(ask)
	if err != nil {
		return nil
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return nil
	}
	return text
}

// CloseIdleConnections is for http.Client.
func (r *remote) CloseIdleConnections() { (&http.Client{Transport: r.next}).CloseIdleConnections() }

// expectChecks fails a test whose answers were never checked.
func (r *remote) expectChecks() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answers > 0 && r.described == nil {
		r.t.Errorf("%d answers came, and no OpenAPI document to check them against", r.answers)
	}
}
