package app

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	nethttp "net/http"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ledger/internal/bus"
	"github.com/weirlog/weir/ledger/internal/console"
	"github.com/weirlog/weir/ledger/internal/http"
	"github.com/weirlog/weir/ledger/internal/integrity"
	"github.com/weirlog/weir/ledger/internal/plans"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/services"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
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
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/prune"
	"github.com/weirlog/weir/shared/replica"
	"github.com/weirlog/weir/shared/telemetry"
	"github.com/weirlog/weir/shared/tracing"
	"github.com/weirlog/weir/shared/turns"
)

// An App is one ledger. Several may run against one database and share the work.
type App struct {
	config      Config
	clock       func() time.Time
	logger      *slog.Logger
	dialer      *sharedbus.Dialer // of the brokers
	metrics     *telemetry.Service
	tracer      *tracing.Tracer
	pool        *pgxpool.Pool
	reads       *pgxpool.Pool   // for requests
	replica     *replica.Reader // for those that list
	cursors     *httpapi.Cursors
	services    *services.Services
	publisher   *publisher.Publisher
	logs        *consumer.Consumer
	tenants     *consumer.Consumer
	outcomes    *consumer.Consumer
	relay       *relay.Relay
	credentials *state.Reader
	directory   *identity.Directory // of projects
	projects    *state.Reader       // feeds it
	accounts    *bus.Accounts
	checker     *integrity.Checker
	advancer    *plans.Advancer
	sealer      *integrity.Sealer
	pruner      *prune.Pruner
	eraser      *erasure.Eraser
	plaintext   *exposure.Watch
	handler     nethttp.Handler
	endpoint    *httpapi.Endpoint
}

// New connects, migrates the schema and builds the process; it starts nothing and does not wait for
// a broker. The App is for one Run.
func New(ctx context.Context, config Config, logger *slog.Logger) (*App, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("cannot start the ledger: %w", err)
	}
	clock := config.clock()
	dialer, err := config.BrokerAccess.Dialer()
	if err != nil {
		return nil, fmt.Errorf("cannot start the ledger: %w", err)
	}
	pool, err := pg.OpenMigrated(ctx, config.DatabaseURL.Reveal(), postgres.Schema, postgres.Migrations()...)
	if err != nil {
		return nil, fmt.Errorf("cannot start the ledger: %w", err)
	}
	a := &App{
		config: config, clock: clock, logger: logger, dialer: dialer, metrics: config.Telemetry.Service("ledger", logger), pool: pool,
		directory: identity.NewDirectory(),
	}
	if err = a.openReads(ctx); err == nil {
		err = a.build()
	}
	if err != nil {
		a.Close()
		return nil, fmt.Errorf("cannot start the ledger: %w", err)
	}
	return a, nil
}

func (a *App) build() (err error) {
	if a.tracer, err = a.config.Tracing.Open("ledger", a.metrics.Registerer, a.logger); err != nil {
		return err
	}
	log := &bus.Log{Brokers: a.config.Brokers, Dialer: a.dialer}
	a.services = services.New(services.Config{
		Reads: a.reads, Replica: a.replica, Writes: a.pool, Turns: turns.New(turns.Reads(readers, "weir_ledger"), a.metrics.Registerer),
		Save: bus.SaveEvents, IDs: newID, Rules: a.config.rules(), Kept: a.config.kept(), Clock: a.clock, Time: a.config.databaseTime(),
		Deciding: turns.New(unitofwork.Deciders(deciders, longestTurn), a.metrics.Registerer), End: log.End, Owns: a.directory.Owns,
	})
	a.publisher, err = publisher.New(publisher.Config{Brokers: a.config.Brokers, Dialer: a.dialer, Metrics: a.metrics.Registerer}, a.logger)
	if err != nil {
		return err
	}
	if err := a.buildConsumers(); err != nil {
		return err
	}
	a.relay = relay.New(relay.Config{
		Pool: a.pool, Name: bus.RelayName, Publisher: a.publisher, Read: bus.Outbox().Read, Metrics: a.metrics.Registerer,
	}, a.logger)
	a.accounts = &bus.Accounts{Pool: a.pool, Services: a.services, Publisher: a.publisher, Clock: a.clock, Logger: a.logger}
	a.checker = integrity.NewChecker(integrity.CheckerConfig{
		Pool: a.pool, Log: log, Interval: cmp.Or(a.config.CheckInterval, checkInterval), Clock: a.clock,
		Logger: a.logger, Metrics: a.metrics.Registerer,
	})
	a.advancer = &plans.Advancer{
		Service: a.services.Plans, Pool: a.pool, End: log.End, Interval: advanceInterval, Logger: a.logger, Wake: a.relay.Wake,
	}
	a.sealer = &integrity.Sealer{
		Pool: a.pool, Time: a.config.databaseTime(), End: log.End, Interval: sealInterval, Logger: a.logger, Sealed: integrity.NewSealed(a.metrics.Registerer),
	}
	a.pruner = a.newPruner()
	a.eraser = erasure.New(erasure.Config{
		Module: "ledger", Tables: postgres.Erasable(), Pool: a.pool, Bus: a.publisher, Clock: a.clock, Metrics: a.metrics.Registerer, Logger: a.logger,
	})
	if err := a.buildAPI(); err != nil {
		return err
	}
	if a.endpoint, err = a.config.Open(a.handler, a.logger, a.clock, a.metrics.Registerer); err == nil {
		a.endpoint.SeePlaintext(a.plaintext.See)
	}
	return err
}

func (a *App) buildConsumers() (err error) {
	handler := &bus.Consumer{Services: a.services, Clock: a.clock, Conflicts: bus.NewConflicts(a.metrics.Registerer)}
	wake := func([]sharedbus.Record) { a.relay.Wake() }
	a.logs, err = consumer.New(consumer.Config{
		Brokers: a.config.Brokers, Dialer: a.dialer, Group: contract.GroupLedger, Topic: contract.TopicLogs, Pool: a.pool, Erased: erasure.IsErased,
		AcceptLost: a.config.AcceptLostRecords,
		Handle:     handler.Logs, Committed: wake, MaxRecords: cmp.Or(a.config.BatchRecords, batchRecords), MaxWait: cmp.Or(a.config.BatchWait, batchWait),
		MaxBytes: batchBytes, Metrics: a.metrics.Registerer, Tracer: a.tracer,
	}, a.logger)
	if err != nil {
		return err
	}
	a.tenants, err = consumer.New(consumer.Config{
		Brokers: a.config.Brokers, Dialer: a.dialer, Group: contract.GroupLedgerTenants, Topic: contract.TopicTenants, Pool: a.pool, Erased: erasure.IsErased,
		AcceptLost: true, // the topic is compacted: what its beginning lacks was withdrawn
		Handle:     handler.Tenants, Committed: wake, MaxWait: time.Millisecond, Metrics: a.metrics.Registerer,
	}, a.logger)
	if err != nil {
		return err
	}
	a.outcomes, err = consumer.New(consumer.Config{
		Brokers: a.config.Brokers, Dialer: a.dialer, Group: contract.GroupLedgerOutcomes, Topic: contract.TopicOutcomes, Pool: a.pool, Erased: erasure.IsErased,
		AcceptLost: true, // nothing is charged by it: what was so long ago is past
		Handle:     handler.Outcomes, Committed: wake, MaxWait: time.Millisecond, Metrics: a.metrics.Registerer,
	}, a.logger)
	return err
}

// Defaults where the configuration has zero.
const (
	batchRecords  = 20_000 // of which a thousand organizations have a few hundred sums
	batchWait     = 10 * time.Millisecond
	batchBytes    = 32 << 20 // the records come with their lines
	checkInterval = 10 * time.Second
)

// advanceInterval is how often it is looked what is due.
const advanceInterval = time.Second

// sealInterval is how often it is looked whether an hour can be sealed.
const sealInterval = 10 * time.Second

// deciders is how many requests decide at once: the consumers need connections too.
const deciders = 3

// longestTurn is how long a request waits to decide.
const longestTurn = 10 * time.Second

// newID is unlike any other.
func newID() string { return strings.ToLower(rand.Text()) }

func (a *App) buildAPI() error {
	proxies, err := httpapi.ParseProxies(a.config.TrustedProxies)
	if err != nil {
		return err
	}
	credentials := identity.NewCredentials(a.clock)
	from := state.Config{
		Brokers: a.config.Brokers, Dialer: a.dialer, SnapshotDir: state.SnapshotDir(a.config.StateDir, "ledger"), Metrics: a.metrics.Registerer,
	}
	a.credentials, a.projects = credentials.Follow(from, a.logger), a.directory.Follow(from, a.logger)
	facts := keyfact.Publisher{Bus: a.publisher, Source: bus.Outbox().Source, Clock: a.clock, Logger: a.logger}
	a.plaintext = exposure.NewWatch(credentials, facts.Exposed, a.clock, a.logger)
	router := httpapi.NewRouter(httpapi.Options{
		Logger: a.logger, Clock: a.clock, Proxies: proxies, Observe: httpapi.NewMetrics(a.metrics.Registerer).Observe, Cursors: a.cursors, Tracer: a.tracer,
	})
	httpapi.Health(router, a.Ready)
	guard := identity.NewGuard(identity.GuardConfig{
		Credentials: credentials, Ready: a.canJudge, Limits: a.config.Limits, Proxies: proxies, Clock: a.clock, Metrics: a.metrics.Registerer,
	})
	api := &http.API{Services: a.services, Guard: guard}
	api.Mount(router)
	console.Mount(router, console.Config{Services: a.services, Directory: a.directory, Guard: guard, Operators: a.config.OperatingOrganization})
	a.handler = router
	return nil
}

// readers is how many requests read the database at once.
const readers = 4

// openReads opens what answers requests: connections of their own, and the key of their cursors.
func (a *App) openReads(ctx context.Context) (err error) {
	if a.reads, err = pg.OpenReaders(ctx, a.config.DatabaseURL.Reveal(), postgres.Schema, readers); err != nil {
		return err
	}
	a.replica, err = replica.Open(ctx, a.config.Replica, replica.Options{
		Schema: postgres.Schema, Conns: readers, Clock: a.clock, Metrics: a.metrics.Registerer, Logger: a.logger,
	})
	if err != nil {
		return err
	}
	pg.Measure(a.metrics.Registerer, map[string]*pgxpool.Pool{"writes": a.pool, "reads": a.reads})
	a.cursors, err = cursorkey.Cursors(ctx, a.reads)
	return err
}

// Handler serves the ledger's routes.
func (a *App) Handler() nethttp.Handler { return a.handler }

// Addr is where Run listens; empty where it does not.
func (a *App) Addr() string { return a.endpoint.Addr() }

// canJudge is nil once credentials and projects are loaded.
func (a *App) canJudge() error {
	return httpapi.Part("keys and projects", errors.Join(a.credentials.Complete(), a.projects.Complete()))
}

// Ready is nil once credentials and projects are read and all consumers have caught up.
func (a *App) Ready() error {
	return errors.Join(a.canJudge(), httpapi.Part("the consumer of entries", a.logs.Ready()),
		httpapi.Part("the consumer of tenants", a.tenants.Ready()), httpapi.Part("the consumer of outcomes", a.outcomes.Ready()))
}

// Report is what the running checks have found so far.
func (a *App) Report() integrity.Report { return a.checker.Report() }

// Run works until ctx ends. It waits for the topics that others write until they create them.
func (a *App) Run(ctx context.Context) error {
	defer a.Close()
	return lifecycle.Run(ctx, a.ensureTopics, a.logs.Run, a.tenants.Run, a.outcomes.Run, a.eraser.Run, a.relay.Run, a.credentials.Run, a.projects.Run,
		a.accounts.Run, a.checker.Run, a.advancer.Run, a.sealer.Run, a.pruner.Run, a.plaintext.Run, a.endpoint.Run, a.metrics.Run)
}

// ensureTopics creates the topics that the ledger writes, where they are missing.
func (a *App) ensureTopics(ctx context.Context) error {
	return topics.EnsureWith(ctx, a.config.Brokers, a.dialer, contract.OwnedBy("ledger", contract.Topics(0, 0)))
}

// Close releases what New took, where the App is never run.
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
