package allinone

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/alecthomas/kong"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/deploy/gateway"
	grouping "github.com/weirlog/weir/grouping/app"
	ingest "github.com/weirlog/weir/ingest/app"
	ledger "github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/cluster"
	"github.com/weirlog/weir/shared/bus/topics"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/embedded/kafka"
	"github.com/weirlog/weir/shared/embedded/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/lifecycle"
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
	caFile      string         // by which programs know it
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
	m.Tenants.ConsoleCAFile = cmp.Or(m.Tenants.ConsoleCAFile, g.caFile)
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

// Limits of the backends.
const (
	topicsTimeout   = 15 * time.Second
	databaseTimeout = 30 * time.Second // to stop
)

// backends are the database and the broker: those given, or those that
// this process starts.
type backends struct {
	config  Config
	dir     *dataDir
	metrics prometheus.Registerer
	logger  *slog.Logger
	atEnd   func(end func() error) // stops what was started

	databaseURL string
	brokers     []string
	access      bus.Access
	refuses     func() error                    // why the broker takes no records
	supervise   func(ctx context.Context) error // the database; nil: it was given
	watches     []*watch
}

func (b *backends) open(ctx context.Context) (err error) {
	if b.databaseURL, err = b.openDatabase(ctx); err != nil {
		return err
	}
	if b.brokers, b.access, err = b.openBroker(ctx); err != nil {
		return err
	}
	return b.watch()
}

// loops look after the backends.
func (b *backends) loops() (loops []func(context.Context) error) {
	if b.supervise != nil {
		loops = append(loops, b.supervise)
	}
	for _, watch := range b.watches {
		loops = append(loops, watch.run)
	}
	return loops
}

// answer returns which of database and broker do not answer.
func (b *backends) answer() (err error) {
	for _, watch := range b.watches {
		err = errors.Join(err, watch.check())
	}
	return err
}

// openDatabase returns the URL of the given PostgreSQL, or of one that it
// starts in the data directory.
func (b *backends) openDatabase(ctx context.Context) (url string, err error) {
	if given := b.config.DatabaseURL.Reveal(); given != "" {
		return given, nil
	}
	server, err := postgres.Start(ctx, postgres.Config{Dir: b.dir.postgres(), Metrics: b.metrics, Logger: b.logger})
	if err != nil {
		return "", err
	}
	b.supervise = func(ctx context.Context) error { return server.Supervise(ctx, time.Now) }
	b.atEnd(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), databaseTimeout)
		defer cancel()
		return server.Stop(ctx)
	})
	return server.URL(), nil
}

// watch asks both backends continuously whether they answer.
func (b *backends) watch() error {
	dialer, err := b.access.Dialer()
	if err != nil {
		return err
	}
	up := NewBackendUp(b.metrics)
	b.watches = []*watch{
		newWatch("database", func(ctx context.Context) error { return askDatabase(ctx, b.databaseURL) }, up, b.logger),
		newWatch("broker", func(ctx context.Context) error {
			return errors.Join(askBrokers(ctx, b.brokers, dialer), b.refuses())
		}, up, b.logger),
	}
	return nil
}

// openBroker returns the addresses of the given brokers, or of one in this
// process, with all topics created, and how the modules authenticate there.
func (b *backends) openBroker(ctx context.Context) (brokers []string, access bus.Access, err error) {
	brokers, access = b.config.Brokers, b.config.BrokerAccess
	b.refuses = func() error { return nil } // those given show it themselves
	if len(brokers) == 0 {
		embedded, err := kafka.Start(kafka.Config{
			Dir: b.dir.kafka(), Sync: b.config.BrokerSync, Metrics: b.config.Telemetry.Registry.For("broker"), Logger: b.logger.With(slog.String("module", "broker")),
		})
		if err != nil {
			return nil, access, err
		}
		b.atEnd(embedded.Close)
		b.refuses = embedded.Err
		brokers = []string{embedded.Addr()}
		access = bus.Access{User: kafka.User, PasswordFile: kafka.PasswordFile(b.dir.kafka()), Mechanism: kafka.Mechanism}
	}
	dialer, err := access.Dialer()
	if err != nil {
		return nil, access, err
	}
	ctx, cancel := context.WithTimeout(ctx, topicsTimeout)
	defer cancel()
	if err := topics.EnsureWith(ctx, brokers, dialer, contract.Topics(b.config.LogPartitions, b.config.LogRetention)); err != nil {
		return nil, access, fmt.Errorf("cannot reach Kafka at %v: %w", brokers, err)
	}
	return brokers, access, nil
}

// How often backends are asked, and how long they may take.
const (
	watchInterval = 3 * time.Second
	watchTimeout  = 3 * time.Second
)

// A watch asks one backend continuously whether it answers. Requests for
// /readyz read what it found, so strangers cause no work.
type watch struct {
	name   string
	ask    func(ctx context.Context) error
	logger *slog.Logger
	away   atomic.Pointer[error] // why it does not answer; nil: it does
	up     prometheus.Gauge
}

// NewBackendUp registers the metric of the backends.
func NewBackendUp(metrics prometheus.Registerer) *prometheus.GaugeVec {
	return promauto.With(metrics).NewGaugeVec(prometheus.GaugeOpts{
		Name: "weir_backend_up", Help: "Whether the database or the broker of weir run answers: 1 or 0.",
	}, []string{"backend"})
}

func newWatch(name string, ask func(ctx context.Context) error, up *prometheus.GaugeVec, logger *slog.Logger) *watch {
	w := &watch{name: name, ask: ask, logger: logger.With(slog.String("backend", name)), up: up.WithLabelValues(name)}
	w.up.Set(1) // the modules were built on it
	return w
}

func (w *watch) run(ctx context.Context) error {
	for ; ctx.Err() == nil; lifecycle.Pause(ctx, watchInterval) {
		w.look(ctx)
	}
	return nil
}

func (w *watch) look(ctx context.Context) {
	asked, cancel := context.WithTimeout(ctx, watchTimeout)
	defer cancel()
	err := w.ask(asked)
	if ctx.Err() != nil {
		return
	}
	if err == nil {
		if w.away.Swap(nil) != nil {
			w.logger.Warn("answers again") // a warning, as its end was
		}
		w.up.Set(1)
		return
	}
	if w.away.Swap(&err) == nil {
		w.logger.Warn("does not answer", slog.String("error", err.Error()))
	}
	w.up.Set(0)
}

// check returns the part that is not ready, or nil.
func (w *watch) check() error {
	if away := w.away.Load(); away != nil {
		return httpapi.Part(w.name, *away)
	}
	return nil
}

// askDatabase connects: open connections would answer while the server
// admits no others.
func askDatabase(ctx context.Context, url string) error {
	config, err := pgxpool.ParseConfig(url) // it may have settings of pools, too
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return err
	}
	return errors.Join(conn.Ping(ctx), conn.Close(ctx))
}

// askBrokers succeeds if any broker answers.
func askBrokers(ctx context.Context, brokers []string, dialer *bus.Dialer) (err error) {
	for _, broker := range brokers {
		reached := cluster.Reach(ctx, broker, dialer)
		if reached == nil {
			return nil
		}
		err = errors.Join(err, reached)
	}
	return err
}
