package openapitest

import (
	"io"
	"net/http"
	"testing"
)

// Transport returns next, by which tests ask module over a network, and
// fails the test as Handler does.
func Transport(t testing.TB, module http.Handler, next http.RoundTripper) http.RoundTripper {
	t.Helper()
	return &transport{t, load(t, module), next}
}

type transport struct {
	t         testing.TB
	described *document
	next      http.RoundTripper
}

func (r *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	follow(r.t, r.described, request, response)
	return response, nil
}

// follow checks the exchange once the answer is read or closed.
func follow(t testing.TB, described *document, request *http.Request, response *http.Response) {
	e := exchange{request, sentBody(request), response.StatusCode, response.Header, &body{}}
	response.Body = newReader(response.Body, e.answered, func() { described.check(t, e) })
}

// sentBody returns the request's body, if it can be read again.
func sentBody(request *http.Request) *body {
	if request.GetBody == nil {
		return &body{ended: request.Body == nil || request.Body == http.NoBody}
	}
	again, err := request.GetBody()
	if err != nil {
		return &body{}
	}
	sent := &body{}
	_, _ = io.Copy(io.Discard, newReader(again, sent, func() {}))
	return sent
}
