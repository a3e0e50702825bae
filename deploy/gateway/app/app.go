package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/deploy/gateway"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/telemetry"
)

// Config is the gateway's configuration. The tags are the names in the
// environment and the help that cmd shows.
type Config struct {
	httpapi.ServerConfig `embed:""`

	Telemetry telemetry.Config `embed:""`

	IngestURL   string `help:"HTTPS address of ingest." env:"WEIR_INGEST_URL" required:""`
	LedgerURL   string `help:"HTTPS address of ledger." env:"WEIR_LEDGER_URL" required:""`
	GroupingURL string `help:"HTTPS address of grouping." env:"WEIR_GROUPING_URL" required:""`
	TenantsURL  string `help:"HTTPS address of tenants." env:"WEIR_TENANTS_URL" required:""`
	CAFile      string `help:"Authorities that the modules' certificates are checked against, PEM; the system's when empty." env:"WEIR_CA_FILE"`
}

func (c Config) urls() map[gateway.Module]string {
	return map[gateway.Module]string{
		gateway.Ingest: c.IngestURL, gateway.Ledger: c.LedgerURL, gateway.Grouping: c.GroupingURL, gateway.Tenants: c.TenantsURL,
	}
}

// Validate joins everything that is wrong with the settings.
func (c Config) Validate() error {
	var errs []error
	for _, module := range gateway.Modules() {
		if _, err := parseTarget(c.urls()[module]); err != nil {
			errs = append(errs, fmt.Errorf("cannot route to %s: %w", module, err))
		}
	}
	return errors.Join(append(errs, c.ServerConfig.Validate())...)
}

func parseTarget(text string) (*url.URL, error) {
	target, err := url.Parse(text)
	if err != nil || target.Scheme != "https" || target.Host == "" || (target.Path != "" && target.Path != "/") {
		return nil, fmt.Errorf("the URL %q is not of the form https://host:port", text)
	}
	return target, nil
}

// App is the gateway.
type App struct {
	config    Config
	gateway   *gateway.Gateway
	plaintext *gateway.PlaintextReporter
	logger    *slog.Logger
	metrics   *telemetry.Service
}

// New builds the gateway; it starts nothing and needs no module to be there yet.
func New(config Config, logger *slog.Logger) (*App, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	pool, err := loadAuthorities(config.CAFile)
	if err != nil {
		return nil, err
	}
	transport := gateway.NewTransport(&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12})
	proxies, err := httpapi.ParseProxies(config.TrustedProxies)
	if err != nil {
		return nil, err
	}
	metrics := config.Telemetry.Service("gateway", logger)
	backends, err := config.backends(transport, proxies, gateway.NewUnreached(metrics.Registerer), logger)
	if err != nil {
		return nil, err
	}
	ingest, err := parseTarget(config.IngestURL)
	if err != nil {
		return nil, err
	}
	router, err := gateway.New(backends, proxies, logger, time.Now)
	if err != nil {
		return nil, err
	}
	return &App{config: config, gateway: router, plaintext: gateway.NewPlaintextReporter(ingest, transport, logger), logger: logger, metrics: metrics}, nil
}

func (c Config) backends(
	transport http.RoundTripper, proxies []netip.Prefix, unreached *prometheus.CounterVec, logger *slog.Logger,
) (map[gateway.Module]gateway.Backend, error) {
	backends := map[gateway.Module]gateway.Backend{}
	for module, text := range c.urls() {
		target, err := parseTarget(text)
		if err != nil {
			return nil, err
		}
		remote := gateway.Remote{
			Target: target, Transport: transport, Trusted: proxies, Logger: logger, Clock: time.Now,
			Unreached: unreached.WithLabelValues(string(module)),
		}
		backends[module] = remote.Backend()
	}
	return backends, nil
}

// loadAuthorities reads a PEM file of certificates; nil, the system's, for no file.
func loadAuthorities(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the authorities: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("cannot read the authorities in %q: there is no certificate in it", file)
	}
	return pool, nil
}

// Run serves until ctx ends, then lets the requests under way finish.
func (a *App) Run(ctx context.Context) error {
	endpoint, err := a.config.Open(a.gateway, a.logger, time.Now, a.metrics.Registerer)
	if err != nil {
		return err
	}
	endpoint.SeePlaintext(a.plaintext.See)
	return lifecycle.Run(ctx, endpoint.Run, a.plaintext.Run, a.metrics.Run)
}
