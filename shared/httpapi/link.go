package httpapi

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"

	"github.com/weirlog/weir/shared/httpapi/connections"
)

// A link is a client's connection as net/http sees it.
type link interface {
	net.Conn
	conn() *connections.Conn
	tlsState() *tls.ConnectionState // nil: plain HTTP

	// begin and end enclose what a handler does; idle follows once all
	// of the answer was sent. Status is 0 if there is no answer.
	begin()
	end(r *http.Request, status int)
	idle()
}

// secrecy is what both kinds of links know of what is under them.
type secrecy struct {
	known *connections.Conn
	state *tls.ConnectionState
}

func (s *secrecy) conn() *connections.Conn        { return s.known }
func (s *secrecy) tlsState() *tls.ConnectionState { return s.state }

type linkKey struct{}

// withLink lets a request find its connection.
func withLink(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, linkKey{}, conn)
}

func linkOf(ctx context.Context) link {
	found, _ := ctx.Value(linkKey{}).(link)
	return found
}

// connOf returns the connection of a request; nil outside a server.
func connOf(r *http.Request) *connections.Conn {
	if found := linkOf(r.Context()); found != nil {
		return found.conn()
	}
	return nil
}

// follow reports a connection's state to the table.
func follow(conn net.Conn, state http.ConnState) {
	known, ok := conn.(link)
	switch {
	case !ok:
	case state == http.StateActive:
		known.conn().Set(connections.Active)
	case state == http.StateIdle:
		known.idle()
		known.conn().Set(connections.Idle)
	}
}

// attend tells a link what is made of its requests.
func attend(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		over := linkOf(r.Context())
		if over == nil {
			next.ServeHTTP(w, r)
			return
		}
		r.TLS = over.tlsState() // net/http sees no TLS, as it is ended before
		over.begin()
		seen := &seenAnswer{ResponseWriter: w}
		defer func() { over.end(r, seen.status) }() // also of an answer that is cut off
		next.ServeHTTP(seen, r)
		if seen.status == 0 {
			seen.status = http.StatusOK
		}
	})
}

// A seenAnswer notes the status of an answer.
type seenAnswer struct {
	http.ResponseWriter
	status int
}

// Unwrap is for http.ResponseController.
func (s *seenAnswer) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func (s *seenAnswer) WriteHeader(status int) {
	if s.status == 0 && status >= http.StatusOK {
		s.status = status
	}
	s.ResponseWriter.WriteHeader(status)
}

func (s *seenAnswer) Write(p []byte) (int, error) {
	if s.status == 0 {
		s.status = http.StatusOK
	}
	return s.ResponseWriter.Write(p)
}

// Flush sends what was written.
func (s *seenAnswer) Flush() { _ = http.NewResponseController(s.ResponseWriter).Flush() }
