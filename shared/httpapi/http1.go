package httpapi

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
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
