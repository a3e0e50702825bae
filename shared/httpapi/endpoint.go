package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// ServerConfig says where a service listens. Embed it in a service's configuration.
type ServerConfig struct {
	Listen         string   `help:"Address of the HTTPS listener, such as :8443 or 127.0.0.1:0. Empty: no listener of its own." env:"WEIR_LISTEN"`
	TLSCertFile    string   `help:"PEM file with the server's certificate." env:"WEIR_TLS_CERT_FILE"`
	TLSKeyFile     string   `help:"PEM file with the certificate's key." env:"WEIR_TLS_KEY_FILE"`
	TrustedProxies []string `help:"Addresses or prefixes of proxies that end TLS and whose X-Forwarded headers count." env:"WEIR_TRUSTED_PROXIES"`
}

// Validate checks what can be checked without touching the world.
func (c ServerConfig) Validate() error {
	var errs []error
	if c.Listen != "" && (c.TLSCertFile == "" || c.TLSKeyFile == "") {
		errs = append(errs, fmt.Errorf("cannot listen on %q without a certificate: set WEIR_TLS_CERT_FILE and WEIR_TLS_KEY_FILE", c.Listen))
	}
	_, err := ParseProxies(c.TrustedProxies)
	return errors.Join(append(errs, err)...)
}

// An Endpoint is a service's own HTTPS listener, or none.
type Endpoint struct {
	server   *Server
	listener net.Listener // nil: none
}

// Open loads the certificate and opens the listener; without an address it opens none.
func (c ServerConfig) Open(handler http.Handler, logger *slog.Logger, clock func() time.Time) (*Endpoint, error) {
	if c.Listen == "" {
		return &Endpoint{}, nil
	}
	tlsConfig, err := LoadTLS(c.TLSCertFile, c.TLSKeyFile)
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
	server := &Server{Handler: handler, TLS: tlsConfig, TrustedProxies: proxies, Logger: logger, Clock: clock}
	return &Endpoint{server: server, listener: listener}, nil
}

// SeeInClear makes the endpoint tell of requests over plain HTTP: see Server. It is called before Run, if at all.
func (e *Endpoint) SeeInClear(see func(InClear)) {
	if e.server != nil {
		e.server.SeeInClear = see
	}
}

// Addr is where the endpoint listens, "" where there is none.
func (e *Endpoint) Addr() string {
	if e.listener == nil {
		return ""
	}
	return e.listener.Addr().String()
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

// Close gives the address back where Run was never called; after Run it does nothing.
func (e *Endpoint) Close() {
	if e.listener != nil {
		_ = e.listener.Close()
	}
}
