package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	nethttp "net/http"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/grouping/internal/bus"
	"github.com/weirlog/weir/grouping/internal/console"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/grouping/internal/http"
	"github.com/weirlog/weir/grouping/internal/postgres"
	sharedbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/bus/state"
	"github.com/weirlog/weir/shared/bus/topics"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/cursorkey"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/exposure"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/keyfact"
	"github.com/weirlog/weir/shared/keyuse"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/prune"
	"github.com/weirlog/weir/shared/replica"
	"github.com/weirlog/weir/shared/telemetry"
	"github.com/weirlog/weir/shared/tracing"
)

// An App groups errors and serves the groups.
// Several may share one database and the work.
type App struct {
	config      Config
	clock       func() time.Time
	logger      *slog.Logger
	dialer      *sharedbus.Dialer // of the brokers
	metrics     *telemetry.Service
	tracer      *tracing.Tracer
	pool        *pgxpool.Pool
	reads       *pgxpool.Pool   // for requests
	replica     *replica.Reader // for the same
	cursors     *httpapi.Cursors
	service     *groups.Service
	publisher   *publisher.Publisher
	logs        *consumer.Consumer
	tenants     *consumer.Consumer // of deletions
	relay       *relay.Relay
	pruner      *prune.Pruner
	eraser      *erasure.Eraser
	credentials *state.Reader
	directory   *identity.Directory
	projects    *state.Reader
	plaintext   *exposure.Watch
	meter       *keyuse.Meter // of uses of API keys
	keyFacts    *keyfact.Publisher
	handler     nethttp.Handler
	endpoint    *httpapi.Endpoint
}

// New connects, migrates the schema and builds the process, without
// waiting for a broker. Nothing runs until Run, which may be called once.
func New(ctx context.Context, config Config, logger *slog.Logger) (*App, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("cannot start grouping: %w", err)
	}
	clock := config.Clock
	if clock == nil {
		clock = time.Now //nolint:forbidigo // this is where the clock of the system comes in
	}
	dialer, err := config.BrokerAccess.Dialer()
	if err != nil {
		return nil, fmt.Errorf("cannot start grouping: %w", err)
	}
	pool, err := pg.OpenMigrated(ctx, config.DatabaseURL.Reveal(), postgres.Schema, postgres.Migrations()...)
	if err != nil {
		return nil, fmt.Errorf("cannot start grouping: %w", err)
	}
	a := &App{config: config, clock: clock, logger: logger, dialer: dialer, pool: pool, metrics: config.Telemetry.Service("grouping", logger)}
	if err = a.openReads(ctx); err == nil {
		err = a.build()
	}
	if err != nil {
		a.Close()
		return nil, fmt.Errorf("cannot start grouping: %w", err)
	}
	return a, nil
}

// batchWait is used where the configuration has zero.
const batchWait = 10 * time.Millisecond

func (a *App) build() (err error) {
	if a.tracer, err = a.config.Tracing.Open("grouping", a.metrics.Registerer, a.logger); err != nil {
		return err
	}
	a.publisher, err = publisher.New(publisher.Config{Brokers: a.config.Brokers, Dialer: a.dialer, Metrics: a.metrics.Registerer}, a.logger)
	if err != nil {
		return err
	}
	a.directory = identity.NewDirectory()
	a.service = groups.New(groups.Config{
		NewGroups: a.config.newGroups(), Projects: a.directory, Reads: a.reads, Replica: a.replica, AtOnce: a.config.reads(), Clock: a.clock,
		Metrics: a.metrics.Registerer,
	})
	if err := a.buildConsumers(); err != nil {
		return err
	}
	a.relay = relay.New(relay.Config{
		Pool: a.pool, Name: bus.RelayName, Publisher: a.publisher, Read: bus.Outbox().Read, Metrics: a.metrics.Registerer,
	}, a.logger)
	a.pruner, a.eraser = a.newPruner(), a.newEraser()
	if err := a.buildAPI(); err != nil {
		return err
	}
	if a.endpoint, err = a.config.Open(a.handler, a.logger, a.clock, a.metrics.Registerer); err == nil {
		a.endpoint.SeePlaintext(a.plaintext.See)
	}
	return err
}

func (a *App) buildConsumers() (err error) {
	count := countErrors(a.metrics.Registerer)
	grouper := bus.Consumer{Service: a.service, Count: countEffects(a.metrics.Registerer)}
	a.logs, err = consumer.New(consumer.Config{
		Brokers: a.config.Brokers, Dialer: a.dialer, Group: contract.GroupGrouping, Topic: contract.TopicLogs, Pool: a.pool, Erased: erasure.IsErased,
		AcceptLost: a.config.AcceptLostRecords, Handle: grouper.Consume, Lanes: bus.Lanes(),
		Committed: func(records []sharedbus.Record) {
			count(records)
			a.relay.Wake()
		}, MaxRecords: a.config.BatchRecords, MaxWait: cmp.Or(a.config.BatchWait, batchWait), Metrics: a.metrics.Registerer, Tracer: a.tracer,
	}, a.logger)
	if err != nil {
		return err
	}
	a.tenants, err = erasure.NewConsumer(consumer.Config{
		Brokers: a.config.Brokers, Dialer: a.dialer, Group: contract.GroupGroupingTenants, Pool: a.pool, Metrics: a.metrics.Registerer,
	}, a.logger)
	return err
}

func (a *App) buildAPI() error {
	proxies, err := httpapi.ParseProxies(a.config.TrustedProxies)
	if err != nil {
		return err
	}
	credentials := identity.NewCredentials(a.clock)
	from := state.Config{
		Brokers: a.config.Brokers, Dialer: a.dialer, SnapshotDir: state.SnapshotDir(a.config.StateDir, "grouping"), Metrics: a.metrics.Registerer,
	}
	a.credentials, a.projects = credentials.Follow(from, a.logger), a.directory.Follow(from, a.logger)
	a.keyFacts = &keyfact.Publisher{Bus: a.publisher, Source: bus.Outbox().Source, Clock: a.clock, Logger: a.logger}
	a.meter = keyuse.NewMeter(a.clock)
	a.meter.Measure(a.metrics.Registerer)
	a.plaintext = exposure.NewWatch(credentials, a.keyFacts.Exposed, a.clock, a.logger)
	router := httpapi.NewRouter(httpapi.Options{
		Logger: a.logger, Clock: a.clock, Proxies: proxies, Observe: httpapi.NewMetrics(a.metrics.Registerer).Observe, Cursors: a.cursors, Tracer: a.tracer,
	})
	httpapi.Health(router, a.Ready)
	guard := identity.NewGuard(identity.GuardConfig{
		Credentials: credentials, Ready: a.canJudge, Limits: a.config.Limits, Proxies: proxies, Clock: a.clock, Metrics: a.metrics.Registerer,
		Used: a.meter.Seen(proxies),
	})
	api := &http.API{Service: a.service, Guard: guard, Projects: a.directory}
	api.Mount(router)
	console.Mount(router, console.Config{Service: a.service, Directory: a.directory, Guard: guard})
	a.handler = router
	return nil
}

// openReads opens what requests use: their own
// connections, and the key of their cursors.
func (a *App) openReads(ctx context.Context) (err error) {
	if a.reads, err = pg.OpenReaders(ctx, a.config.DatabaseURL.Reveal(), postgres.Schema, a.config.reads()); err != nil {
		return err
	}
	a.replica, err = replica.Open(ctx, a.config.Replica, replica.Options{
		Schema: postgres.Schema, Conns: a.config.reads(), Clock: a.clock, Metrics: a.metrics.Registerer, Logger: a.logger,
	})
	if err != nil {
		return err
	}
	pg.Measure(a.metrics.Registerer, map[string]*pgxpool.Pool{"writes": a.pool, "reads": a.reads})
	a.cursors, err = cursorkey.Cursors(ctx, a.reads)
	return err
}

// Handler serves the routes of this module.
func (a *App) Handler() nethttp.Handler { return a.handler }

// Addr is where Run listens; empty where it does not.
func (a *App) Addr() string { return a.endpoint.Addr() }

// canJudge is nil once credentials and projects are loaded.
func (a *App) canJudge() error {
	return httpapi.Part("keys and projects", errors.Join(a.credentials.Complete(), a.projects.Complete()))
}

// Ready is nil once credentials and projects are read and the
// consumer has caught up.
func (a *App) Ready() error {
	return errors.Join(a.canJudge(), httpapi.Part("the consumer of entries", a.logs.Ready()))
}

// Run works until ctx ends. It waits until
// others have created the topics that it reads.
func (a *App) Run(ctx context.Context) error {
	defer a.Close()
	defer a.meter.Finish(a.keyFacts.Used)
	return lifecycle.Run(ctx, a.ensureTopic, a.logs.Run, a.tenants.Run, a.eraser.Run, a.relay.Run, a.credentials.Run, a.projects.Run, a.pruner.Run,
		a.plaintext.Run, a.endpoint.Run,
		a.publishUses, a.metrics.Run)
}

func (a *App) publishUses(ctx context.Context) error { return a.meter.Run(ctx, a.keyFacts.Used) }

func (a *App) newEraser() *erasure.Eraser {
	return erasure.New(erasure.Config{
		Module: "grouping", Tables: postgres.Erasable(), Pool: a.pool, Bus: a.publisher, Clock: a.clock, Metrics: a.metrics.Registerer, Logger: a.logger,
	})
}

// Close releases what New acquired, if Run is never called.
func (a *App) Close() {
	if a.publisher != nil {
		_ = a.publisher.Close()
	}
	if a.endpoint != nil {
		a.endpoint.Close()
	}
	if a.reads != nil {
		a.reads.Close()
	}
	a.replica.Close()
	a.pool.Close()
	a.tracer.Close()
}

// ensureTopic creates weir.grouping.v1,
// grouping's topic, where it is missing.
func (a *App) ensureTopic(ctx context.Context) error {
	return topics.EnsureWith(ctx, a.config.Brokers, a.dialer, contract.OwnedBy("grouping", contract.Topics(0, 0)))
}
