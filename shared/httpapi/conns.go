package httpapi

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weirlog/weir/shared/fairshare"
	"github.com/weirlog/weir/shared/httpapi/connections"
)

// limit sets up the limits of connections.
func (s *Server) limit() error {
	files, err := connections.Files()
	if err != nil {
		return err
	}
	limits, err := s.Limits.Within(files)
	if err != nil {
		return err
	}
	s.connections = connections.New(connections.Config{
		Limits: limits, Network: s.network, Metrics: s.Metrics, Clock: s.Clock, Rates: s.rates,
	})
	processors := runtime.GOMAXPROCS(0)
	s.handshakes = fairshare.NewLimiter(fairshare.Limits{
		Capacity: int64(2 * processors), PerKey: int64(max(1, processors/2)), Leases: limits.PerNetwork, Queue: limits.Total, Wait: readHeaderTimeout,
	})
	return nil
}

// network returns the network that a connection counts for.
func (s *Server) network(remote net.Addr) (network netip.Prefix, trusted bool) {
	peer, err := netip.ParseAddrPort(remote.String())
	if err != nil {
		return netip.Prefix{}, false
	}
	client := peer.Addr().Unmap()
	return ClientNetwork(client), within(s.TrustedProxies, client)
}

// queueHandshakes computes handshakes in turn, network by network: a
// signature costs the server more than the client. A turn lasts from
// the client's first message until the answer is sent, without waiting
// for the client. After a HelloRetryRequest, which costs nothing, the
// handshake asks for its turn again with the certificate.
func (s *Server) queueHandshakes(config *tls.Config) *tls.Config {
	config = config.Clone()
	given := config.GetCertificate
	if given == nil {
		certificates := config.Certificates
		given = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) { return choose(certificates, hello) }
	}
	config.NextProtos = []string{protoHTTP2, protoHTTP1}
	config.Certificates = nil // else clients that name no server bypass GetCertificate
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) { return nil, s.awaitHandshake(hello) }
	config.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if err := s.awaitHandshake(hello); err != nil {
			return nil, err
		}
		return given(hello)
	}
	return config
}

// choose returns the first certificate that a client can use, or
// else the first.
func choose(certificates []tls.Certificate, hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	for i := range certificates {
		if hello.SupportsCertificate(&certificates[i]) == nil {
			return &certificates[i], nil
		}
	}
	if len(certificates) == 0 {
		return nil, errors.New("the server has no certificate")
	}
	return &certificates[0], nil
}

// awaitHandshake waits for a handshake's turn, unless it has it.
func (s *Server) awaitHandshake(hello *tls.ClientHelloInfo) error {
	conn, ok := hello.Conn.(*connections.Conn)
	if !ok || conn.AwaitsIO() {
		return nil
	}
	return s.awaitTurn(hello.Context(), conn)
}

func (s *Server) awaitTurn(ctx context.Context, conn *connections.Conn) error {
	network, _ := s.network(conn.RemoteAddr())
	lease, err := s.handshakes.Acquire(ctx, network.String(), 1)
	if err != nil {
		conn.Refuse(connections.HandshakeQueue)
		return err
	}
	conn.BeforeIO(lease.Release)
	return nil
}

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
		if r.ProtoMajor == 1 && stopping(r) {
			w.Header().Set("Connection", "close") // so that no client has to learn it by a failure
		}
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

// split makes two listeners of one, for HTTP/1 and for HTTP/2, of the
// connections that table admits and open returns.
func split(listener net.Listener, table *connections.Table, open func(*connections.Conn) (link, error)) (http1, http2 net.Listener) {
	one, two := newBranch(listener), newBranch(listener)
	begin := func(conn *connections.Conn) {
		opened, err := open(conn)
		if err != nil {
			_ = conn.Close()
			return
		}
		if _, ok := opened.(*linkHTTP2); ok {
			two.hand(opened)
			return
		}
		one.hand(opened)
	}
	admit := func(conn net.Conn) {
		if admitted := table.Admit(conn); admitted != nil {
			go begin(admitted)
		}
	}
	for range runtime.GOMAXPROCS(0) { // what one goroutine can't take waits in the kernel's queue, and every newcomer behind it
		go func() {
			err := acceptAll(listener, admit)
			one.fail(err)
			two.fail(err)
		}()
	}
	return one, two
}

// acceptAll accepts connections until the listener is closed. Like
// net/http it retries after a transient failure, such as too many open
// files: one burst of sockets must not end the service.
func acceptAll(listener net.Listener, take func(net.Conn)) error {
	for pause := time.Duration(0); ; {
		conn, err := listener.Accept()
		if err == nil {
			pause = 0
			take(conn)
			continue
		}
		var passing interface{ Temporary() bool }
		if !errors.As(err, &passing) || !passing.Temporary() {
			return err
		}
		pause = min(max(5*time.Millisecond, 2*pause), time.Second)
		time.Sleep(pause)
	}
}

// A branch is the listener of one kind of connection.
type branch struct {
	net.Listener
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
	err    error
}

func newBranch(listener net.Listener) *branch {
	return &branch{Listener: listener, conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (b *branch) hand(conn net.Conn) {
	select {
	case b.conns <- conn:
	case <-b.closed:
		_ = conn.Close()
	}
}

func (b *branch) fail(err error) {
	b.once.Do(func() {
		b.err = err
		close(b.closed)
	})
}

// Accept waits for the next connection of this kind.
func (b *branch) Accept() (net.Conn, error) {
	select {
	case conn := <-b.conns:
		return conn, nil
	case <-b.closed:
		return nil, b.err
	}
}

// Close closes the listener under both branches.
func (b *branch) Close() error {
	b.fail(net.ErrClosed)
	if err := b.Listener.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// Media types of answers.
const (
	TypeJSON  = "application/json"
	TypeLines = "application/x-ndjson"
	TypeCSV   = "text/csv"
	TypeHTML  = "text/html"

	// TypeEvents is that of server-sent events: such an answer lasts.
	TypeEvents = "text/event-stream"
)

// CSVText is a field that no spreadsheet takes for a formula: a
// possible one gets an apostrophe in front.
func CSVText(field string) string {
	if field != "" && strings.ContainsRune("=+-@\t\r", rune(field[0])) {
		return "'" + field
	}
	return field
}

// Preferred returns the offered media type that the client prefers; the
// first without a preference, the last of several equals.
func Preferred(r *http.Request, offered ...string) string {
	likes := make(map[string]float64, len(offered))
	for _, accepted := range strings.Split(strings.Join(r.Header.Values("Accept"), ","), ",") {
		kind, parameters, err := mime.ParseMediaType(accepted)
		if err != nil {
			continue
		}
		quality, err := strconv.ParseFloat(parameters["q"], 64)
		if err != nil {
			quality = 1
		}
		likes[kind] = quality
	}
	preferred := offered[0]
	for _, kind := range offered[1:] {
		if likes[kind] > 0 && likes[kind] >= likes[preferred] {
			preferred = kind
		}
	}
	return preferred
}
