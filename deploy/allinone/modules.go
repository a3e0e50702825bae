package allinone

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/alecthomas/kong"

	"github.com/weirlog/weir/deploy/gateway"
	grouping "github.com/weirlog/weir/grouping/app"
	ingest "github.com/weirlog/weir/ingest/app"
	ledger "github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/process"
	"github.com/weirlog/weir/shared/service"
	"github.com/weirlog/weir/shared/telemetry"
	tenants "github.com/weirlog/weir/tenants/app"
)

// Modules are the modules' own settings, as if each ran in its own process.
type Modules struct {
	Ingest   ingest.Config
	Ledger   ledger.Config
	Grouping grouping.Config
	Tenants  tenants.Config
}

// ModulesFromEnvironment reads the modules' settings from the
// environment, as their own processes do.
func ModulesFromEnvironment() (m Modules, err error) {
	return m, errors.Join(fromEnvironment(&m.Ingest), fromEnvironment(&m.Ledger), fromEnvironment(&m.Grouping), fromEnvironment(&m.Tenants))
}

// fromEnvironment fills a configuration by its tags. It is checked
// later: the process's own values are still missing.
func fromEnvironment(config any) error {
	parser, err := kong.New(config, process.SecretFiles())
	if err != nil {
		return err
	}
	read, err := kong.Trace(parser, nil)
	if err != nil {
		return err
	}
	return errors.Join(read.Resolve(), read.ApplyDefaults())
}

// A module is the common part of all four.
type module interface {
	Handler() http.Handler
	Ready() error
	Behind() []httpapi.Backlog
	Run(ctx context.Context) error
	Prune(ctx context.Context) error
	LogsIntact() error // nil while no log lacks what it applied
	Close()            // instead of Run
}

// given is what the process provides to all modules.
type given struct {
	databaseURL httpapi.Secret
	brokers     []string
	access      bus.Access // for the brokers
	proxies     []string
	stateDir    string
	drain       time.Duration
	operator    httpapi.Secret
	origin      string         // where people reach the console
	webhookKeys httpapi.Secret // if the module has none of its own
	start       string         // names this start of the process
	metrics     *telemetry.Registry
}

// apply sets what all services share. The process shows the metrics,
// not each service.
func (g given) apply(config *service.Config) {
	config.ServerConfig = httpapi.ServerConfig{TrustedProxies: g.proxies, Drain: g.drain}
	config.Brokers, config.BrokerAccess, config.DatabaseURL = g.brokers, g.access, g.databaseURL
	config.Start = g.start
	config.StateDir, config.Telemetry = g.stateDir, telemetry.Config{Registry: g.metrics}
}

// build builds the modules, all or none.
func (m Modules) build(ctx context.Context, g given, logger *slog.Logger) (map[gateway.Module]module, error) {
	modules := map[gateway.Module]module{}
	m.Ingest.OthersIntact = func() error { return logsIntact(modules) }
	makers := m.makers(ctx, g, logger)
	for _, name := range gateway.Modules() {
		built, err := makers[name]()
		if err != nil {
			closeAll(modules)
			return nil, err // it names the module
		}
		modules[name] = built
	}
	return modules, nil
}

// logsIntact returns nil while no module has applied what its log lacks.
func logsIntact(modules map[gateway.Module]module) error {
	for _, m := range modules {
		if err := m.LogsIntact(); err != nil {
			return err
		}
	}
	return nil
}

// makers build one module each. It gets no listener: the gateway
// calls its handler.
func (m Modules) makers(ctx context.Context, g given, logger *slog.Logger) map[gateway.Module]func() (module, error) {
	for _, config := range []*service.Config{&m.Ingest.Config, &m.Ledger.Config, &m.Grouping.Config, &m.Tenants.Config} {
		g.apply(config)
	}
	m.Tenants.OperatorToken, m.Tenants.ConsoleOrigin = g.operator, cmp.Or(m.Tenants.ConsoleOrigin, g.origin)
	if m.Tenants.Webhooks.Keys == "" {
		m.Tenants.Webhooks.Keys = g.webhookKeys
	}
	log := func(name gateway.Module) *slog.Logger { return logger.With(slog.String("module", string(name))) }
	return map[gateway.Module]func() (module, error){
		gateway.Tenants:  func() (module, error) { return tenants.New(ctx, m.Tenants, log(gateway.Tenants)) },
		gateway.Ingest:   func() (module, error) { return ingest.New(ctx, m.Ingest, log(gateway.Ingest)) },
		gateway.Ledger:   func() (module, error) { return ledger.New(ctx, m.Ledger, log(gateway.Ledger)) },
		gateway.Grouping: func() (module, error) { return grouping.New(ctx, m.Grouping, log(gateway.Grouping)) },
	}
}

// plaintextReports passes requests over plain HTTP to every module
// that handles them.
func plaintextReports(modules map[gateway.Module]module) func(httpapi.PlaintextRequest) {
	return func(request httpapi.PlaintextRequest) {
		for _, m := range modules {
			if seer, wants := m.(interface {
				OnPlaintext(request httpapi.PlaintextRequest)
			}); wants {
				seer.OnPlaintext(request)
			}
		}
	}
}

// closeAll closes modules that will not run.
func closeAll(modules map[gateway.Module]module) {
	for _, module := range modules {
		module.Close()
	}
}
