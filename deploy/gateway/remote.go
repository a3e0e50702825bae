package gateway

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/tracing"
)

// A Remote is a module at an HTTPS address such as https://10.0.0.7:8443.
type Remote struct {
	Target    *url.URL
	Transport http.RoundTripper
	Trusted   []netip.Prefix // proxies before the gateway whose X-Forwarded-For is trusted and passed on
	Logger    *slog.Logger
	Clock     func() time.Time
	Unreached prometheus.Counter // see NewUnreached; may be nil
	Tracer    *tracing.Tracer    // traces each request; nil: none
}

// Backend returns its backend.
func (r Remote) Backend() Backend {
	proxy := &httputil.ReverseProxy{
		Rewrite:       r.rewrite,
		Transport:     r.Transport,
		FlushInterval: -1, // at once: answers may be streams
		ErrorHandler:  r.failure(),
		ErrorLog:      slog.NewLogLogger(r.Logger.Handler(), slog.LevelDebug),
	}
	return Backend{Handler: httpapi.Traced(r.Tracer, r.Trusted, lasting(proxy)), Ready: r.ready}
}

// lasting lets answers of events last, until the gateway stops.
func lasting(proxy http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		proxy.ServeHTTP(&lastingWriter{w, ctx, cancel}, r.WithContext(ctx))
	})
}

type lastingWriter struct {
	http.ResponseWriter
	ctx    context.Context //nolint:containedctx // of the request, which ends with the writer
	cancel func()
}

// Unwrap is for http.ResponseController.
func (l *lastingWriter) Unwrap() http.ResponseWriter { return l.ResponseWriter }

func (l *lastingWriter) WriteHeader(status int) {
	if l.Header().Get("Content-Type") == httpapi.TypeEvents {
		httpapi.LastLonger(l.ResponseWriter, httpapi.LongestEvents)
		go func() {
			select {
			case <-httpapi.Stopping(l.ctx):
				l.cancel()
			case <-l.ctx.Done():
			}
		}()
	}
	l.ResponseWriter.WriteHeader(status)
}

// rewrite sends the client's address in X-Forwarded-For; it drops
// entries of all but trusted proxies.
func (r Remote) rewrite(p *httputil.ProxyRequest) {
	p.SetURL(r.Target)
	p.Out.Host = p.In.Host
	p.Out.URL.RawQuery = p.In.URL.RawQuery // with what can't be read, for the module to refuse: the proxy dropped it
	if r.trusts(p.In.RemoteAddr) {
		p.Out.Header["X-Forwarded-For"] = p.In.Header["X-Forwarded-For"]
	}
	p.SetXForwarded()
	tracing.Propagate(p.In.Context(), p.Out.Header)
	p.Out.Header.Del(httpapi.HeaderPlaintext)      // only the gateway may set it: see PlaintextReporter
	p.Out.Header.Set("X-Forwarded-Proto", "https") // plain HTTP never gets here: see httpapi.Server
}

func (r Remote) trusts(address string) bool {
	peer, err := netip.ParseAddrPort(address)
	if err != nil {
		return false
	}
	for _, prefix := range r.Trusted {
		if prefix.Contains(peer.Addr().Unmap()) {
			return true
		}
	}
	return false
}

// failure answers for an unreachable module: with the same 500 as the
// module's own failure, or the 503 after which OpenTelemetry sends again.
func (r Remote) failure() func(http.ResponseWriter, *http.Request, error) {
	router := httpapi.NewRouter(httpapi.Options{Logger: r.Logger, Clock: r.Clock})
	router.NotFound(httpapi.Handle(func(_ http.ResponseWriter, request *http.Request) error {
		problem := httpapi.Unavailable("This part of the service is unavailable for the moment. Send the whole request again.", time.Second)
		if strings.HasPrefix(request.URL.Path, "/v1/otlp/") {
			problem.Status = http.StatusServiceUnavailable
		}
		return problem
	}))
	return func(w http.ResponseWriter, request *http.Request, err error) {
		if request.Context().Err() != nil {
			panic(http.ErrAbortHandler) // the client has gone
		}
		if r.Unreached != nil {
			r.Unreached.Inc()
		}
		r.Logger.Warn("cannot reach a module", slog.String("target", r.Target.String()), slog.String("error", err.Error()))
		router.ServeHTTP(w, request)
	}
}

// readyTimeout limits a module's answer whether it is ready.
const readyTimeout = 2 * time.Second

func (r Remote) ready(ctx context.Context) ([]httpapi.Backlog, error) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.Target.JoinPath("readyz").String(), nil)
	if err != nil {
		return nil, err
	}
	answer, err := r.Transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("answers %s", answer.Status)
	}
	var said httpapi.ReadyAnswer
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxReadyAnswer)).Decode(&said); err != nil {
		return nil, fmt.Errorf("its answer can't be read: %w", err)
	}
	return said.Behind, nil
}

// maxReadyAnswer is more than a module says, in bytes.
const maxReadyAnswer = 64 << 10

// dialTimeout limits how long an unreachable module delays a request.
const dialTimeout = 3 * time.Second

// NewTransport returns the transport to the replicas of a module, which have
// trusted certificates of its name: kept alive, HTTP/1.1 (one request a
// connection, so that a slow body never delays another's).
func NewTransport(authorities *Authorities, name string) *http.Transport {
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second} // the handshake included
	return &http.Transport{
		DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			encrypted := tls.Dialer{NetDialer: dialer, Config: authorities.config(name)}
			return encrypted.DialContext(ctx, network, address)
		},
		MaxIdleConns:          1024,
		MaxIdleConnsPerHost:   256,
		IdleConnTimeout:       60 * time.Second, // below the servers' own, so that no request meets a closing connection
		ExpectContinueTimeout: time.Second,
		DisableCompression:    true,
	}
}

const (
	maxPlaintext     = 256 // requests waiting to be repeated
	plaintextTimeout = 5 * time.Second
	warnEvery        = time.Minute // at most: outsiders must not fill the log
)

// A PlaintextReporter repeats to ingest, over TLS, what the gateway has
// refused as plain HTTP: only the key and its sender. Ingest has the
// keys; the gateway does not.
type PlaintextReporter struct {
	Ingest    *url.URL
	Transport http.RoundTripper
	Logger    *slog.Logger

	seen   chan httpapi.PlaintextRequest
	warned time.Time // last; only for Run
}

// NewPlaintextReporter returns one without any reports.
func NewPlaintextReporter(ingest *url.URL, transport http.RoundTripper, logger *slog.Logger) *PlaintextReporter {
	return &PlaintextReporter{Ingest: ingest, Transport: transport, Logger: logger, seen: make(chan httpapi.PlaintextRequest, maxPlaintext)}
}

// See takes a request. It never waits: in a flood it drops some.
func (p *PlaintextReporter) See(request httpapi.PlaintextRequest) {
	select {
	case p.seen <- request:
	default:
	}
}

// Run repeats requests until ctx ends.
func (p *PlaintextReporter) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case request := <-p.seen:
			if err := p.repeat(ctx, request); err != nil && ctx.Err() == nil {
				p.warn(err)
			}
		}
	}
}

// warn logs why a request to ingest failed, at most once in warnEvery.
func (p *PlaintextReporter) warn(err error) {
	if now := time.Now(); p.warned.IsZero() || now.Sub(p.warned) >= warnEvery {
		p.warned = now
		p.Logger.Warn("cannot report a key that came in plaintext to ingest", slog.String("error", err.Error()))
	}
}

// repeat sends a request that ingest refuses as the gateway did. Its
// error does not show the key.
func (p *PlaintextReporter) repeat(ctx context.Context, seen httpapi.PlaintextRequest) error {
	ctx, cancel := context.WithTimeout(ctx, plaintextTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.Ingest.JoinPath("v1", "logs").String(), nil)
	if err != nil {
		return err
	}
	request.Header.Set("X-Api-Key", seen.Key)
	request.Header.Set("User-Agent", seen.Client)
	if seen.Address.IsValid() {
		request.Header.Set("X-Forwarded-For", seen.Address.String())
	}
	if seen.Forwarded {
		request.Header.Set("X-Forwarded-Proto", "http")
	} else {
		request.Header.Set(httpapi.HeaderPlaintext, "1")
	}
	answer, err := p.Transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusForbidden {
		return fmt.Errorf("it answers %s: does it trust the gateway, by WEIR_TRUSTED_PROXIES?", answer.Status)
	}
	return nil
}
