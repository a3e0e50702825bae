package openapitest

import (
	"io"
	"net/http"
	"sync"
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

// maxKept is how many bytes of a body are kept for the check. The
// longest page of a list is shorter.
const maxKept = 16 << 20

// A body is the part of a body that was read or written.
type body struct {
	text  []byte
	ended bool // text is its end
	cut   bool // more came than is kept
}

// complete reports whether text is the whole body.
func (b *body) complete() bool { return b.ended && !b.cut }

func (b *body) add(piece []byte) {
	room := maxKept - len(b.text)
	b.cut = b.cut || len(piece) > room
	b.text = append(b.text, piece[:min(len(piece), room)]...)
}

// A reader keeps what is read of a body, and calls done once, at its
// end or when it is closed.
type reader struct {
	io.ReadCloser
	body *body
	done func()
}

func newReader(from io.ReadCloser, into *body, done func()) *reader {
	return &reader{from, into, sync.OnceFunc(done)}
}

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.body.add(p[:n])
	if err == io.EOF {
		r.body.ended = true
		r.done()
	}
	return n, err
}

func (r *reader) Close() error {
	r.done()
	return r.ReadCloser.Close()
}
