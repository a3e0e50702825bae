package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/weirlog/weir/deploy/gateway"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/telemetry"
	"github.com/weirlog/weir/shared/tracing"
	"github.com/weirlog/weir/shared/tracing/otlp"
)

// Config is the gateway's configuration. The tags are the names in the
// environment and the help texts.
type Config struct {
	httpapi.ServerConfig `embed:""`

	Telemetry telemetry.Config `embed:""`
	Tracing   otlp.Config      `embed:""`

	IngestURL   string `help:"HTTPS address of ingest." env:"WEIR_INGEST_URL" required:""`
	LedgerURL   string `help:"HTTPS address of ledger." env:"WEIR_LEDGER_URL" required:""`
	GroupingURL string `help:"HTTPS address of grouping." env:"WEIR_GROUPING_URL" required:""`
	TenantsURL  string `help:"HTTPS address of tenants." env:"WEIR_TENANTS_URL" required:""`
	CAFile      string `help:"Authorities that the modules' certificates are checked against, PEM; the system's when empty. Read again for each connection." env:"WEIR_CA_FILE"`
}

func (c Config) urls() map[gateway.Module]string {
	return map[gateway.Module]string{
		gateway.Ingest: c.IngestURL, gateway.Ledger: c.LedgerURL, gateway.Grouping: c.GroupingURL, gateway.Tenants: c.TenantsURL,
	}
}

// Validate joins all errors of the settings.
func (c Config) Validate() error {
	var errs []error
	for _, module := range gateway.Modules() {
		if _, err := parseTarget(c.urls()[module]); err != nil {
			errs = append(errs, fmt.Errorf("WEIR_%s_URL is %w", strings.ToUpper(string(module)), err))
		}
	}
	return errors.Join(append(errs, c.ServerConfig.Validate())...)
}

func parseTarget(text string) (*url.URL, error) {
	target, err := url.Parse(text)
	if err != nil || target.Scheme != "https" || target.Host == "" || (target.Path != "" && target.Path != "/") {
		return nil, fmt.Errorf("%q: use an address of the form https://host:port", text)
	}
	return target, nil
}

// App is the gateway.
type App struct {
	config    Config
	gateway   *gateway.Gateway
	plaintext *gateway.PlaintextReporter
	replicas  []func(context.Context) error // of each module: see gateway.Replicas
	logger    *slog.Logger
	metrics   *telemetry.Service
	tracer    *tracing.Tracer
}

// New builds the gateway; it starts nothing and needs no module to run yet.
func New(config Config, logger *slog.Logger) (*App, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	a := &App{config: config, logger: logger, metrics: config.Telemetry.Service("gateway", logger)}
	authorities, err := gateway.LoadAuthorities(config.CAFile, logger)
	if err != nil {
		return nil, err
	}
	proxies, err := httpapi.ParseProxies(config.TrustedProxies)
	if err != nil {
		return nil, err
	}
	if a.tracer, err = config.Tracing.Open("gateway", a.metrics.Registerer, logger); err != nil {
		return nil, err
	}
	if err = a.route(gateway.Remote{Trusted: proxies, Logger: logger, Clock: time.Now, Tracer: a.tracer}, authorities); err != nil {
		a.tracer.Close()
		return nil, err
	}
	return a, nil
}

// route adds every module as remote, at its own address.
func (a *App) route(remote gateway.Remote, authorities *gateway.Authorities) (err error) {
	backends, unreached := map[gateway.Module]gateway.Backend{}, gateway.NewUnreached(a.metrics.Registerer)
	count := gateway.NewReplicaCount(a.metrics.Registerer)
	for module, text := range a.config.urls() {
		if remote.Target, err = parseTarget(text); err != nil {
			return err
		}
		transport := gateway.NewTransport(authorities, remote.Target.Hostname())
		replicas := gateway.NewReplicas(remote.Target, transport, net.DefaultResolver.LookupHost, count, a.logger)
		a.replicas, remote.Transport = append(a.replicas, replicas.Run), replicas
		remote.Unreached = unreached.WithLabelValues(string(module))
		backends[module] = remote.Backend()
		if module == gateway.Ingest {
			a.plaintext = gateway.NewPlaintextReporter(remote.Target, remote.Transport, a.logger)
		}
	}
	a.gateway, err = gateway.New(backends, remote.Trusted, a.logger, time.Now)
	return err
}

// Run serves until ctx ends, then lets running requests finish.
func (a *App) Run(ctx context.Context) error {
	defer a.tracer.Close()
	endpoint, err := a.config.Open(a.gateway, a.logger, time.Now, a.metrics.Registerer)
	if err != nil {
		return err
	}
	endpoint.OnPlaintext(a.plaintext.See)
	ctx, stop := endpoint.Leaving(ctx)
	defer stop()
	return lifecycle.Run(ctx, append(a.replicas, endpoint.Run, a.plaintext.Run, a.metrics.Run)...)
}
