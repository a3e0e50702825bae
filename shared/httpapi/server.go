package httpapi

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/shared/fairshare"
	"github.com/weirlog/weir/shared/httpapi/connections"
)

// Limits of a connection. A body may be large, so a request has
// minutes; a header has seconds.
const (
	readHeaderTimeout = 5 * time.Second
	requestTimeout    = 3 * time.Minute
	idleTimeout       = 90 * time.Second
	maxHeaderBytes    = 16 << 10
	maxStreams        = 128
)

// DefaultDrain exceeds the slowest request: ingest publishes one of 128
// MiB within 44 s.
const DefaultDrain = 45 * time.Second

// A Server serves HTTPS on one address. There it answers plain HTTP
// with 403 https_required and closes the connection, except for
// requests of trusted proxies with X-Forwarded-Proto: https.
type Server struct {
	Handler        http.Handler
	TLS            *tls.Config
	TrustedProxies []netip.Prefix
	Logger         *slog.Logger
	Clock          func() time.Time

	// OnPlaintext gets each request with an x-api-key that was refused
	// as plain HTTP, after its answer was made: at most one per
	// connection. It must not wait. May be nil.
	OnPlaintext func(PlaintextRequest)

	Drain time.Duration // how long requests may run on after Serve's context has ended; 0: DefaultDrain

	Limits  connections.Limits    // of connections; 0 means the default
	Metrics prometheus.Registerer // may be nil

	connections *connections.Table
	handshakes  *fairshare.Limiter
	restTimeout time.Duration // see answerFirst
	rates       connections.Rates
}

// Listen opens address; it fails if the port is in use.
func Listen(address string) (net.Listener, error) {
	config := net.ListenConfig{KeepAlive: -1} // connections.Conn sets keep-alives after the first byte: silent connections would cost four system calls more
	listener, err := config.Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s (is another process using it? WEIR_LISTEN sets another address): %w", address, err)
	}
	return listener, nil
}

// ParseProxies reads the addresses or prefixes of trusted proxies.
func ParseProxies(texts []string) ([]netip.Prefix, error) {
	var proxies []netip.Prefix
	for _, text := range texts {
		if !strings.Contains(text, "/") {
			if address, err := netip.ParseAddr(text); err == nil {
				text = netip.PrefixFrom(address, address.BitLen()).String()
			}
		}
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("cannot read trusted proxy %q: use an address such as 10.0.0.7 or a prefix such as 10.0.0.0/8", text)
		}
		proxies = append(proxies, prefix)
	}
	return proxies, nil
}

// Serve serves on listener until ctx ends, then lets running requests
// finish within Drain.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	if err := s.limit(); err != nil {
		return errors.Join(err, listener.Close())
	}
	measureCertificate(s.Metrics, s.TLS)
	opened := &opener{tls: s.queueHandshakes(s.TLS), logger: s.Logger}
	http1, http2 := split(listener, s.connections, opened.open)
	gate := s.gate()
	server1 := s.server(attend(answerFirst(gate, cmp.Or(s.restTimeout, restTimeout))))
	server1.Protocols.SetHTTP1(true)
	server2 := s.server(attend(s.asHTTP1Would(gate)))
	server2.Protocols.SetUnencryptedHTTP2(true) // see linkHTTP2
	server2.MaxHeaderBytes = maxHeaderList      // see headerList and asHTTP1Would
	failed := make(chan error, 2)
	go func() { failed <- server1.Serve(http1) }()
	go func() { failed <- server2.Serve(http2) }()
	select {
	case err := <-failed:
		return errors.Join(err, server1.Close(), server2.Close())
	case <-ctx.Done():
		return shutdown(cmp.Or(s.Drain, DefaultDrain), server1, server2)
	}
}

func shutdown(drain time.Duration, servers ...*http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	var errs []error
	for _, server := range servers {
		if err := server.Shutdown(ctx); err != nil {
			errs = append(errs, fmt.Errorf("cannot finish open requests: %w", err), server.Close())
		}
	}
	return errors.Join(errs...)
}

func (s *Server) server(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:                      handler,
		Protocols:                    new(http.Protocols),
		ReadHeaderTimeout:            readHeaderTimeout,
		ReadTimeout:                  requestTimeout,
		WriteTimeout:                 requestTimeout,
		IdleTimeout:                  idleTimeout,
		MaxHeaderBytes:               maxHeaderBytes,
		DisableGeneralOptionsHandler: true, // OPTIONS * is answered like all else
		HTTP2:                        &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ConnContext:                  withLink,
		ConnState:                    follow,
		ErrorLog:                     slog.NewLogLogger(s.Logger.Handler(), slog.LevelDebug),
	}
}

// gate passes requests whose client used TLS, and refuses all others
// alike. It reads no body and never redirects: that would hide that a
// secret was sent in plaintext.
func (s *Server) gate() http.Handler {
	refuse := identify(s.Logger)(Handle(func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Connection", "close")
		return NewProblem(http.StatusForbidden, CodeHTTPSRequired,
			"Plain HTTP is refused. Use https://, and replace the key that you just sent in plaintext.")
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.secured(r) {
			s.Handler.ServeHTTP(w, r)
			return
		}
		refuse.ServeHTTP(w, r)
		s.seePlaintext(r)
	})
}

// secured reports whether the client used TLS, to us or by the
// report of a trusted proxy.
func (s *Server) secured(r *http.Request) bool {
	protos := r.Header.Values("X-Forwarded-Proto")
	trusted := trusts(s.TrustedProxies, r.RemoteAddr)
	if trusted && r.Header.Get(HeaderPlaintext) != "" {
		return false
	}
	if len(protos) == 0 || !trusted {
		return r.TLS != nil
	}
	return len(protos) == 1 && strings.EqualFold(protos[0], "https")
}
