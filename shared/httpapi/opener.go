package httpapi

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"time"

	"github.com/weirlog/weir/shared/httpapi/connections"
)

// sniffTimeout is how long a connection may stay silent before its first byte.
const sniffTimeout = 5 * time.Second

// tlsHandshake is the first byte of every TLS connection (RFC
// 8446, 5.1: content type handshake).
const tlsHandshake = 0x16

// The protocols that a client may choose in its handshake (RFC 7301).
const (
	protoHTTP1 = "http/1.1"
	protoHTTP2 = "h2"
)

var errArrivals = errors.New("too many new connections of this network")

// An opener does what comes before a connection's first request. TLS is
// ended here, not in net/http, so that both kinds of links see what
// passes in clear.
type opener struct {
	tls    *tls.Config
	logger *slog.Logger
}

// open reads the first byte of conn, waits for its network's rate, and
// does its handshake if it begins one.
func (o *opener) open(conn *connections.Conn) (link, error) {
	first, err := peek(conn)
	if err != nil {
		return nil, err
	}
	if !conn.Account.Arrive() {
		conn.Refuse(connections.Arrivals)
		return nil, errArrivals
	}
	if first != tlsHandshake {
		return &linkHTTP1{Conn: conn, secrecy: secrecy{known: conn}, logger: o.logger}, nil
	}
	secured, err := o.shakeHands(conn)
	if err != nil {
		return nil, err
	}
	state := secured.ConnectionState()
	under := secrecy{known: conn, state: &state}
	if state.NegotiatedProtocol == protoHTTP2 {
		return newLinkHTTP2(secured, under), nil
	}
	return &linkHTTP1{Conn: secured, secrecy: under, logger: o.logger}, nil
}

func peek(conn *connections.Conn) (first byte, err error) {
	_ = conn.SetReadDeadline(time.Now().Add(sniffTimeout)) //nolint:forbidigo // sockets use the system's time
	defer func() { _ = conn.SetReadDeadline(time.Time{}) }()
	return conn.Peek()
}

func (o *opener) shakeHands(conn *connections.Conn) (*tls.Conn, error) {
	secured := tls.Server(conn, o.tls)
	_ = conn.SetDeadline(time.Now().Add(readHeaderTimeout)) //nolint:forbidigo // sockets use the system's time
	defer func() { _ = conn.SetDeadline(time.Time{}) }()
	if err := secured.HandshakeContext(context.Background()); err != nil {
		o.logger.Debug("the handshake failed", slog.String("address", conn.RemoteAddr().String()), slog.String("error", err.Error()))
		return nil, err
	}
	return secured, nil
}
