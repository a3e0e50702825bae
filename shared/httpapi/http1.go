package httpapi

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/weirlog/weir/shared/httpapi/connections"
)

// A linkHTTP1 is a connection of HTTP/1, over TLS or plain. What
// net/http refuses by itself, in plain text, it answers as a problem.
type linkHTTP1 struct {
	net.Conn
	secrecy
	logger *slog.Logger

	answering atomic.Bool // a handler has begun
	refused   bool        // the last request, by net/http
}

// CloseWrite is for net/http, before it drops an unread body.
func (l *linkHTTP1) CloseWrite() error {
	if secured, ok := l.Conn.(*tls.Conn); ok {
		return secured.CloseWrite()
	}
	return nil
}

func (l *linkHTTP1) begin() { l.answering.Store(true) }

func (l *linkHTTP1) end(_ *http.Request, status int) {
	l.known.Account.Answered(status != 0 && status < http.StatusBadRequest)
}

// idle notes the end of an answer, all of which was sent.
func (l *linkHTTP1) idle() { l.answering.Store(false) }

// Write sends what a handler answers, and a problem in place of all
// else: only net/http's own refusals come before any handler.
func (l *linkHTTP1) Write(p []byte) (int, error) {
	if l.answering.Load() {
		return l.Conn.Write(p)
	}
	if l.refused {
		return len(p), nil
	}
	l.refused = true
	l.known.Account.Fault()
	l.known.Linger()
	if _, err := l.Conn.Write(refusedByHTTP(p, l.logger)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// refusedByHTTP returns the problem that stands for an answer of
// net/http, as it is sent.
func refusedByHTTP(answer []byte, logger *slog.Logger) []byte {
	id, problem := newRequestID(), malformed(statusOf(answer), reasonOf(answer))
	logger.Debug("request refused", slog.String("request_id", id), slog.String("reason", problem.Detail))
	body, err := problem.body(id)
	if err != nil {
		return answer
	}
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nConnection: close\r\nContent-Type: application/problem+json\r\nContent-Length: %d\r\nX-Request-Id: %s\r\n\r\n%s",
		problem.Status, http.StatusText(problem.Status), len(body), id, body)
}

// malformed is the problem in place of a status of net/http: all are
// 400, as clients know that one. Reason is net/http's, or "".
func malformed(status int, reason string) *Problem {
	switch {
	case status == http.StatusRequestHeaderFieldsTooLarge:
		return NewProblem(http.StatusBadRequest, CodeInvalidRequest,
			fmt.Sprintf("The headers have more than %d bytes. Send fewer or shorter ones.", maxHeaderBytes))
	case status == http.StatusExpectationFailed:
		return NewProblem(http.StatusBadRequest, CodeInvalidRequest,
			"The header Expect has an unknown value. Send 100-continue, or leave it out.")
	case status == http.StatusNotImplemented:
		return NewProblem(http.StatusBadRequest, CodeInvalidRequest,
			"The Transfer-Encoding is unknown. Send the body with a Content-Length, or chunked.")
	case status == http.StatusHTTPVersionNotSupported:
		return NewProblem(http.StatusBadRequest, CodeInvalidRequest, "The version of HTTP is unknown. Use HTTP/1.1 or HTTP/2.")
	case reason != "":
		return NewProblem(http.StatusBadRequest, CodeInvalidRequest, fmt.Sprintf("The request can't be read as HTTP/1.1: %s.", reason))
	}
	return NewProblem(http.StatusBadRequest, CodeInvalidRequest,
		"The request can't be read as HTTP/1.1. Check its first line and its headers.")
}

// statusOf returns the status of an answer that begins with its line; 0
// if it has none.
func statusOf(answer []byte) int {
	line, _, _ := bytes.Cut(answer, []byte("\r\n"))
	parts := bytes.SplitN(line, []byte(" "), 3)
	if len(parts) < 2 {
		return 0
	}
	status, _ := strconv.Atoi(string(parts[1]))
	return status
}

// reasonOf returns what net/http adds to the status's text, such as
// "missing required Host header".
func reasonOf(answer []byte) string {
	line, _, _ := bytes.Cut(answer, []byte("\r\n"))
	_, reason, _ := bytes.Cut(line, []byte(": "))
	return string(reason)
}

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
