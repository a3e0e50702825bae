package httpapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/shared/httpapi/connections"
	"github.com/weirlog/weir/shared/lifecycle"
)

// ServerConfig sets where a service listens. Embed it in a service's configuration.
type ServerConfig struct {
	Listen         string   `help:"Address of the HTTPS listener, such as :8443 or 127.0.0.1:0. Empty: no listener of its own." env:"WEIR_LISTEN"`
	TLSCertFile    string   `help:"PEM file with the server's certificate." env:"WEIR_TLS_CERT_FILE"`
	TLSKeyFile     string   `help:"PEM file with the certificate's key." env:"WEIR_TLS_KEY_FILE"`
	TrustedProxies []string `help:"Addresses or prefixes of proxies that end TLS and whose X-Forwarded headers count." env:"WEIR_TRUSTED_PROXIES"`

	Leave time.Duration `help:"How long to serve further requests after a stop, while /readyz says no: as long as gateways and load balancers take to notice." env:"WEIR_LEAVE" default:"0s"`
	Drain time.Duration `help:"How long open requests may continue once a stopping process serves no further ones. Whatever kills the process has to wait a little longer." env:"WEIR_DRAIN" default:"45s"`

	Connections ConnectionConfig `embed:""`
}

// ConnectionConfig sets how many connections a listener holds.
type ConnectionConfig struct {
	Max           int `name:"max-connections" help:"How many connections may be open. 0: 2048, or as many as the process may open files for. Beyond it, idle ones are closed." env:"WEIR_MAX_CONNECTIONS"`
	MaxPerNetwork int `name:"max-connections-per-network" help:"How many of them may be of one client network: an IPv4 address, or 64 bits of IPv6; trusted proxies are not bound. 0: 512." env:"WEIR_MAX_CONNECTIONS_PER_NETWORK"`
}

// Limits returns the connections' limits; 0 means the default.
func (c ConnectionConfig) Limits() connections.Limits {
	return connections.Limits{Total: c.Max, PerNetwork: c.MaxPerNetwork}
}

// Validate checks all that does not depend on the limit of open files.
func (c ConnectionConfig) Validate() error {
	if c.Max < 0 || c.MaxPerNetwork < 0 {
		return fmt.Errorf("WEIR_MAX_CONNECTIONS is %d and WEIR_MAX_CONNECTIONS_PER_NETWORK %d: neither can be negative", c.Max, c.MaxPerNetwork)
	}
	return nil
}

// Validate checks all that needs no I/O.
func (c ServerConfig) Validate() error {
	var errs []error
	if c.Listen != "" && (c.TLSCertFile == "" || c.TLSKeyFile == "") {
		errs = append(errs, fmt.Errorf("cannot listen on %q without a certificate: set WEIR_TLS_CERT_FILE and WEIR_TLS_KEY_FILE", c.Listen))
	}
	if c.Leave < 0 || c.Drain < 0 {
		errs = append(errs, fmt.Errorf("WEIR_LEAVE is %s and WEIR_DRAIN %s: neither can be negative", c.Leave, c.Drain))
	}
	_, err := ParseProxies(c.TrustedProxies)
	return errors.Join(append(errs, err, c.Connections.Validate())...)
}

// An Endpoint is a service's own HTTPS listener, or none.
type Endpoint struct {
	server   *Server
	listener net.Listener // nil: none
	leave    time.Duration
}

// Open loads the certificate and opens the listener, if there is an
// address. metrics measures its connections.
func (c ServerConfig) Open(handler http.Handler, logger *slog.Logger, clock func() time.Time, metrics prometheus.Registerer) (*Endpoint, error) {
	if c.Listen == "" {
		return &Endpoint{}, nil
	}
	tlsConfig, err := LoadTLS(c.TLSCertFile, c.TLSKeyFile, logger)
	if err != nil {
		return nil, err
	}
	proxies, err := ParseProxies(c.TrustedProxies)
	if err != nil {
		return nil, err
	}
	listener, err := Listen(c.Listen)
	if err != nil {
		return nil, err
	}
	server := &Server{
		Handler: handler, TLS: tlsConfig, TrustedProxies: proxies, Logger: logger, Clock: clock, Drain: c.Drain,
		Limits: c.Connections.Limits(), Metrics: metrics,
	}
	return &Endpoint{server: server, listener: listener, leave: c.Leave}, nil
}

// OnPlaintext makes the endpoint report requests over plain HTTP: see
// Server. Call it before Run.
func (e *Endpoint) OnPlaintext(see func(PlaintextRequest)) {
	if e.server != nil {
		e.server.OnPlaintext = see
	}
}

// Addr returns the endpoint's address, "" without a listener.
func (e *Endpoint) Addr() string {
	if e.listener == nil {
		return ""
	}
	return e.listener.Addr().String()
}

// Leaving returns the context of a process that has to stop when ctx ends:
// WEIR_LEAVE later. Until then the endpoint serves, with all that runs in that
// context, but says that it is not ready, so that load balancers leave first.
func (e *Endpoint) Leaving(ctx context.Context) (context.Context, context.CancelFunc) {
	if e.leave == 0 {
		return context.WithCancel(ctx)
	}
	later, cancel := context.WithCancel(context.WithValue(context.WithoutCancel(ctx), stopKey{}, ctx.Done()))
	context.AfterFunc(ctx, func() {
		lifecycle.Pause(later, e.leave)
		cancel()
	})
	return later, cancel
}

// Run serves until ctx ends (see Server.Serve).
func (e *Endpoint) Run(ctx context.Context) error {
	if e.listener == nil {
		<-ctx.Done()
		return nil
	}
	e.server.Logger.Info("listening", slog.String("addr", e.Addr()))
	return e.server.Serve(ctx, e.listener)
}

// Close frees the address if Run was never called; after Run it does nothing.
func (e *Endpoint) Close() {
	if e.listener != nil {
		_ = e.listener.Close()
	}
}

// Describe adds a module's description of its API. A gateway answers
// the first path with all modules' parts.
func Describe(router chi.Router, module string, openAPI []byte) {
	router, document := router.With(PublicDocument), Document(openAPI)
	router.Get("/v1/openapi.json", document)
	router.Get("/v1/"+module+"/openapi.json", document)
}

// Document serves a JSON document that rarely changes: it may be cached for
// five minutes, then revalidated by its ETag.
func Document(text []byte) http.HandlerFunc {
	sum := sha256.Sum256(text)
	tag := `"` + hex.EncodeToString(sum[:16]) + `"`
	return func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Type", "application/json")
		header.Set("Cache-Control", "public, max-age=300")
		header.Set("ETag", tag)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(text))
	}
}

// OpenAPI is the part of an OpenAPI document that joining needs. All
// below stays unchanged.
type OpenAPI struct {
	Version    string                                `json:"openapi"`
	Info       map[string]string                     `json:"info"`
	Servers    []map[string]string                   `json:"servers,omitempty"`
	Paths      map[string]json.RawMessage            `json:"paths"`
	Components map[string]map[string]json.RawMessage `json:"components,omitempty"` // bounded by the joined documents
	Tags       []json.RawMessage                     `json:"tags,omitempty"`
}

// Add adds a part. It fails if a path or component exists with other content.
func (d *OpenAPI) Add(text []byte) error {
	var part OpenAPI
	if err := json.Unmarshal(text, &part); err != nil {
		return err
	}
	if d.Paths == nil {
		d.Paths = map[string]json.RawMessage{}
	}
	if err := mergeOpenAPI(d.Paths, part.Paths); err != nil {
		return err
	}
	for kind, components := range part.Components {
		if err := d.addComponents(kind, components); err != nil {
			return err
		}
	}
	d.Tags = append(d.Tags, part.Tags...)
	return nil
}

func (d *OpenAPI) addComponents(kind string, components map[string]json.RawMessage) error {
	if d.Components == nil {
		d.Components = map[string]map[string]json.RawMessage{}
	}
	if d.Components[kind] == nil {
		d.Components[kind] = map[string]json.RawMessage{}
	}
	if err := mergeOpenAPI(d.Components[kind], components); err != nil {
		return fmt.Errorf("components/%s: %w", kind, err)
	}
	return nil
}

func mergeOpenAPI(into, from map[string]json.RawMessage) error {
	for name, value := range from {
		if have, twice := into[name]; twice && !sameJSON(have, value) {
			return fmt.Errorf("%q is described twice, differently", name)
		}
		into[name] = value
	}
	return nil
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}
