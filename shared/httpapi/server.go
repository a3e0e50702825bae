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
	"os"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

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
	server1 := s.server(ctx, attend(answerFirst(gate, cmp.Or(s.restTimeout, restTimeout))))
	server1.Protocols.SetHTTP1(true)
	server2 := s.server(ctx, attend(s.asHTTP1Would(gate)))
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

type stopKey struct{}

// Stopping is closed once the server of a request's context begins to
// stop: an answer without an end of its own has to end then. nil outside a server.
func Stopping(ctx context.Context) <-chan struct{} {
	stopping, _ := ctx.Value(stopKey{}).(<-chan struct{})
	return stopping
}

func stopping(r *http.Request) bool {
	select {
	case <-Stopping(r.Context()):
		return true
	default:
		return false
	}
}

func (s *Server) server(ctx context.Context, handler http.Handler) *http.Server {
	stop := Stopping(ctx) // before ctx ends: see Endpoint.Leaving
	if stop == nil {
		stop = ctx.Done()
	}
	base := context.WithValue(context.Background(), stopKey{}, stop)
	return &http.Server{
		Handler:                      handler,
		BaseContext:                  func(net.Listener) context.Context { return base },
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

// LoadTLS reads a certificate and its key, both PEM files. It reads
// changed files again with the next connection: a renewed certificate
// needs no restart.
func LoadTLS(certFile, keyFile string, logger *slog.Logger) (*tls.Config, error) {
	c := &certificate{files: [2]string{certFile, keyFile}, logger: logger}
	if err := c.load(); err != nil {
		return nil, err
	}
	return &tls.Config{GetCertificate: c.current, MinVersion: tls.VersionTLS12}, nil
}

// A certificate is the last whole one in its files.
type certificate struct {
	files  [2]string // certificate and key
	logger *slog.Logger

	mu     sync.Mutex
	seen   [2]os.FileInfo // of the files last read, whole or not; nil: one was missing
	loaded *tls.Certificate
}

// stat returns nil for a missing file: reading it gives the error.
func stat(file string) os.FileInfo {
	info, err := os.Stat(file)
	if err != nil {
		return nil
	}
	return info
}

// unchanged reports whether a file was neither written nor replaced.
func unchanged(before, now os.FileInfo) bool {
	if before == nil || now == nil {
		return before == nil && now == nil
	}
	return os.SameFile(before, now) && before.ModTime().Equal(now.ModTime()) && before.Size() == now.Size()
}

// current implements tls.Config's GetCertificate.
func (c *certificate) current(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refresh(); err != nil {
		c.logger.Error("the certificate has changed and can't be read: the one before is used", slog.String("error", err.Error()))
	}
	return c.loaded, nil
}

func (c *certificate) load() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refresh()
}

// refresh reads changed files. If a certificate and key don't match,
// one is about to be replaced.
func (c *certificate) refresh() error {
	now := [2]os.FileInfo{stat(c.files[0]), stat(c.files[1])}
	if c.loaded != nil && unchanged(c.seen[0], now[0]) && unchanged(c.seen[1], now[1]) {
		return nil
	}
	c.seen = now
	pair, err := tls.LoadX509KeyPair(c.files[0], c.files[1])
	if err != nil {
		return fmt.Errorf("cannot load the certificate %q with key %q: %w", c.files[0], c.files[1], err)
	}
	if c.loaded != nil {
		c.logger.Info("another certificate is used", slog.Time("expires", pair.Leaf.NotAfter))
	}
	c.loaded = &pair
	return nil
}

// measureCertificate shows the expiry of the certificate in use: a
// renewed one's at the next scrape.
func measureCertificate(registerer prometheus.Registerer, config *tls.Config) {
	if config == nil || config.GetCertificate == nil {
		return
	}
	promauto.With(registerer).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_tls_certificate_expiry_timestamp_seconds", Help: "Unix time at which the certificate of the listener expires.",
	}, func() float64 {
		used, err := config.GetCertificate(nil)
		if err != nil || used.Leaf == nil {
			return 0
		}
		return float64(used.Leaf.NotAfter.Unix())
	})
}

// HeaderPlaintext is sent by our proxy over TLS when it reports a
// refused request that came to its own socket in plaintext. It counts
// only from trusted proxies.
const HeaderPlaintext = "Weir-Received-In-Clear"

// PlaintextRequest is what matters of a refused request over plain HTTP.
type PlaintextRequest struct {
	Key     string     // of the header x-api-key, unchecked: perhaps no key
	Address netip.Addr // where the request came from
	Client  string     // its User-Agent, of any length and content

	// Forwarded means that a proxy reported plaintext, or that the
	// request came in plaintext from a proxy trusted to end TLS. A
	// misconfigured proxy causes that for every request.
	Forwarded bool
}

// seePlaintext reports a refused request.
func (s *Server) seePlaintext(r *http.Request) {
	key := r.Header.Get("X-Api-Key")
	if s.OnPlaintext == nil || key == "" {
		return
	}
	repeated := r.TLS != nil && r.Header.Get(HeaderPlaintext) != ""
	s.OnPlaintext(PlaintextRequest{
		Key: key, Address: ClientAddress(r, s.TrustedProxies), Client: r.UserAgent(),
		Forwarded: trusts(s.TrustedProxies, r.RemoteAddr) && !repeated,
	})
}

// trusts reports whether a connection's peer is a trusted proxy.
func trusts(trusted []netip.Prefix, remote string) bool {
	peer, err := netip.ParseAddrPort(remote)
	return err == nil && within(trusted, peer.Addr().Unmap())
}

// ClientAddress returns the origin of r: the peer, or behind trusted
// proxies the last address in X-Forwarded-For that is not one of
// theirs; earlier ones may be forged. Zero if the peer has no address.
func ClientAddress(r *http.Request, trusted []netip.Prefix) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	client := peer.Addr().Unmap()
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && within(trusted, client); i-- {
		hop, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		client = hop.Unmap()
	}
	return client
}

// ClientNetwork returns the network by which limits count a client: an IPv4
// address, or the first 64 bits of an IPv6 one, whose rest a client chooses.
func ClientNetwork(client netip.Addr) netip.Prefix {
	bits := 64
	if client.Is4() {
		bits = 32
	}
	network, err := client.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return network
}

func within(prefixes []netip.Prefix, address netip.Addr) bool {
	for _, prefix := range prefixes {
		if prefix.Contains(address) {
			return true
		}
	}
	return false
}

// AddressText returns an address as text; empty for none.
func AddressText(address netip.Addr) string {
	if !address.IsValid() {
		return ""
	}
	return address.String()
}
