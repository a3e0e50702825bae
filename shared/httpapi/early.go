package httpapi

import (
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/weirlog/weir/shared/httpapi/connections"
)

// An answer made before the request's body was read is sent at once. The
// rest of the body is read for this long and up to this size, so that
// the connection can take the next request; otherwise it is closed.
const (
	restTimeout = time.Second
	restBytes   = 256 << 10
)

// answerFirst sends answers without waiting for their request's body.
// net/http reads up to 256 KB of it before the answer's first byte: a
// client that announces a body and sends none would get a refusal only
// after a timeout. HTTP/2 does not need this.
func answerFirst(next http.Handler, wait time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		early := &earlyWriter{ResponseWriter: w, request: r, wait: wait, control: http.NewResponseController(w)}
		early.conn = connOf(r)
		early.body.ReadCloser = r.Body
		request := r.WithContext(r.Context()) // net/http keeps its own body
		request.Body = &early.body
		defer early.leave()
		next.ServeHTTP(early, request)
		early.finish()
	})
}

// A watchedBody counts its bytes read.
type watchedBody struct {
	io.ReadCloser
	read   atomic.Int64
	ended  atomic.Bool
	closed atomic.Bool
}

func (b *watchedBody) Read(p []byte) (int, error) {
	if b.closed.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	return b.readOn(p)
}

func (b *watchedBody) readOn(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read.Add(int64(n))
	if err == io.EOF {
		b.ended.Store(true)
	}
	return n, err
}

// Close ends reading. Unlike net/http's it does not wait for the rest.
func (b *watchedBody) Close() error {
	b.closed.Store(true)
	return nil
}

// An earlyWriter notices an answer that begins before the body has ended.
type earlyWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	request *http.Request
	conn    *connections.Conn // may be nil
	wait    time.Duration
	body    watchedBody

	begun   bool
	early   bool // before the body had ended
	whole   bool // the answer's end is visible before the handler returns
	goesOn  bool // the connection takes another request once the rest of the body has come
	settled bool
}

// Unwrap is for http.ResponseController.
func (e *earlyWriter) Unwrap() http.ResponseWriter { return e.ResponseWriter }

func (e *earlyWriter) WriteHeader(status int) {
	if status >= http.StatusOK || status == http.StatusSwitchingProtocols {
		e.begin(status)
	}
	e.ResponseWriter.WriteHeader(status)
}

func (e *earlyWriter) Write(p []byte) (int, error) {
	e.begin(http.StatusOK)
	return e.ResponseWriter.Write(p)
}

// Flush sends what was written.
func (e *earlyWriter) Flush() {
	e.begin(http.StatusOK)
	_ = e.control.Flush()
}

// begin decides the connection's fate before the header is sent.
func (e *earlyWriter) begin(status int) {
	if e.begun {
		return
	}
	e.begun = true
	if e.body.ended.Load() {
		return
	}
	header := e.Header()
	e.early = e.control.EnableFullDuplex() == nil
	e.whole = header.Get("Content-Length") != "" || status == http.StatusNoContent || status == http.StatusNotModified
	e.goesOn = e.whole && header.Get("Connection") != "close" && e.request.Header.Get("Expect") == "" &&
		e.request.ContentLength-e.body.read.Load() <= restBytes
	if !e.goesOn {
		header.Set("Connection", "close")
	}
}

// finish sends an early answer and handles the rest of the body,
// after the handler.
func (e *earlyWriter) finish() {
	if !e.begun && !e.body.ended.Load() {
		e.Header().Set("Content-Length", "0")
		e.WriteHeader(http.StatusOK)
	}
	if !e.early || e.body.ended.Load() {
		e.settled = true
		return
	}
	_ = e.control.Flush()
	e.settled = e.goesOn && e.skipRest()
	if !e.settled && e.whole {
		panic(http.ErrAbortHandler) // the answer is sent; the rest of the body must not be taken for a request
	}
}

// skipRest reads the rest of the body and reports whether it came to its end.
func (e *earlyWriter) skipRest() bool {
	if e.conn != nil {
		e.conn.Set(connections.Idle) // it may be closed to make room
	}
	_ = e.control.SetReadDeadline(time.Now().Add(e.wait)) //nolint:forbidigo // sockets use the system's time
	_, _ = io.CopyN(io.Discard, readerFunc(e.body.readOn), restBytes+1)
	return e.body.ended.Load()
}

// leave closes the connection without waiting for the rest of the body,
// as net/http would, and lets the client read the answer.
func (e *earlyWriter) leave() {
	if e.settled {
		return
	}
	if e.conn != nil {
		e.conn.Linger()
	}
	_ = e.control.SetReadDeadline(time.Now()) //nolint:forbidigo // sockets use the system's time
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
