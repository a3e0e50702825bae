package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	nethttp "net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/admission"
	"github.com/weirlog/weir/ingest/internal/bus"
	"github.com/weirlog/weir/ingest/internal/console"
	"github.com/weirlog/weir/ingest/internal/gap"
	"github.com/weirlog/weir/ingest/internal/http"
	"github.com/weirlog/weir/ingest/internal/intake"
	"github.com/weirlog/weir/ingest/internal/outcomes"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/ingest/internal/searches"
	sharedbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/bus/state"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/exposure"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/inbox"
	"github.com/weirlog/weir/shared/keyfact"
	"github.com/weirlog/weir/shared/keyuse"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/prune"
	"github.com/weirlog/weir/shared/replica"
	"github.com/weirlog/weir/shared/telemetry"
	"github.com/weirlog/weir/shared/tracing"
)

// An App is one ingest. Several may run side by side; they share
// the work of the log store.
type App struct {
	config  Config
	clock   func() time.Time
	logger  *slog.Logger
	dialer  *sharedbus.Dialer // of the brokers
	pool    *pgxpool.Pool
	reads   *pgxpool.Pool   // for searches
	replica *replica.Reader // for the same

	migrated bool // the schema is up to date

	metrics *telemetry.Service
	tracer  *tracing.Tracer

	credentials *identity.Credentials
	directory   *identity.Directory
	gate        *admission.Gate
	store       *postgres.Store
	merger      *postgres.Merger
	searches    *searches.Searches
	cursors     *httpapi.Cursors

	publisher *publisher.Publisher
	states    []*state.Reader // of other services
	accounts  *state.Reader   // three of them
	known     *state.Reader   // of credentials
	projects  *state.Reader
	consumer  *consumer.Consumer
	tenants   *consumer.Consumer // of what is deleted
	pruner    *prune.Pruner
	eraser    *erasure.Eraser
	log       *bus.Log
	gap       *gap.Gap
	gapRead   atomic.Bool

	clockWatch *clockWatch

	meter    *keyuse.Meter
	outcomes *outcomes.Meter
	watch    *exposure.Watch
	keyFacts *keyfact.Publisher

	handler  nethttp.Handler
	endpoint *httpapi.Endpoint
}

// New migrates the schema and builds the process; it starts nothing and
// waits for neither broker nor database, as entries are accepted
// without the latter. The App is for one Run.
func New(ctx context.Context, config Config, logger *slog.Logger) (*App, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("cannot start ingest: %w", err)
	}
	clock := config.Clock
	if clock == nil {
		clock = time.Now //nolint:forbidigo // this is where the clock of the system comes in
	}
	dialer, err := config.BrokerAccess.Dialer()
	if err != nil {
		return nil, fmt.Errorf("cannot start ingest: %w", err)
	}
	pool, err := pg.OpenLater(ctx, config.DatabaseURL.Reveal(), postgres.Schema)
	if err != nil {
		return nil, fmt.Errorf("cannot start ingest: %w", err)
	}
	a := &App{
		config: config, clock: clock, logger: logger, dialer: dialer, pool: pool, metrics: config.Telemetry.Service("ingest", logger),
		log:         &bus.Log{Brokers: config.Brokers, Dialer: dialer},
		cursors:     httpapi.NewCursors(identity.OrganizationOf),
		credentials: identity.NewCredentials(clock), directory: identity.NewDirectory(), gate: admission.NewGate(clock),
	}
	a.clockWatch = &clockWatch{pool: pool, logger: logger}
	if config.Clock == nil {
		a.clockWatch.machine = clock
	}
	a.gap = &gap.Gap{Log: a.log, Pool: pool, Logger: logger}
	if err := a.build(ctx); err != nil {
		a.Close()
		return nil, fmt.Errorf("cannot start ingest: %w", err)
	}
	return a, nil
}

func (a *App) build(ctx context.Context) (err error) {
	if err := a.migrateAtStart(ctx); err != nil && !pg.IsTransient(err) {
		return err
	}
	if a.tracer, err = a.config.Tracing.Open("ingest", a.metrics.Registerer, a.logger); err != nil {
		return err
	}
	if err := a.buildStore(ctx); err != nil {
		return err
	}
	a.pruner = a.newPruner()
	a.publisher, err = publisher.New(publisher.Config{
		Brokers: a.config.Brokers, Dialer: a.dialer, DeliveryTimeout: a.timeout(), Metrics: a.metrics.Registerer,
	}, a.logger)
	if err != nil {
		return err
	}
	a.eraser = erasure.New(erasure.Config{
		Module: "ingest", Tables: postgres.Erasable(), Pool: a.pool, Bus: a.publisher, Clock: a.clock, Metrics: a.metrics.Registerer, Logger: a.logger,
	})
	a.follow()
	a.keyFacts = &keyfact.Publisher{Bus: a.publisher, Source: bus.Source, Clock: a.clock, Logger: a.logger}
	a.meter = keyuse.NewMeter(a.clock)
	a.meter.Measure(a.metrics.Registerer)
	a.outcomes = outcomes.NewMeter(outcomes.Config{
		Process: uuid.NewString(), Interval: cmp.Or(a.config.OutcomesInterval, defaultOutcomes), Clock: a.clock,
		To: &bus.Outcomes{Bus: a.publisher, Clock: a.clock},
	})
	a.outcomes.Measure(a.metrics.Registerer)
	a.watch = exposure.NewWatch(a.credentials, a.keyFacts.Exposed, a.clock, a.logger)
	if err := a.buildConsumer(); err != nil {
		return err
	}
	if err := a.buildAPI(); err != nil {
		return err
	}
	if a.endpoint, err = a.config.Open(a.handler, a.logger, a.clock, a.metrics.Registerer); err == nil {
		a.endpoint.SeePlaintext(a.SeePlaintext)
	}
	return err
}

// buildStore makes the log store and the searches in it, which
// have connections of their own.
func (a *App) buildStore(ctx context.Context) (err error) {
	atOnce := a.config.searches()
	if a.reads, err = pg.OpenReaders(ctx, a.config.DatabaseURL.Reveal(), postgres.Schema, atOnce); err != nil {
		return err
	}
	a.replica, err = replica.Open(ctx, a.config.Replica, replica.Options{
		Schema: postgres.Schema, Conns: atOnce, Clock: a.clock, Metrics: a.metrics.Registerer, Logger: a.logger,
	})
	if err != nil {
		return err
	}
	pg.Measure(a.metrics.Registerer, map[string]*pgxpool.Pool{"writes": a.pool, "reads": a.reads})
	limits := postgres.DefaultLimits()
	limits.Bytes, limits.Time = cmp.Or(a.config.SearchBytes, limits.Bytes), cmp.Or(a.config.SearchTime, limits.Time)
	a.store = postgres.NewStore(postgres.Config{Readers: a.reads, Replica: a.replica, Limits: limits, Clock: a.clock, Metrics: a.metrics.Registerer})
	a.merger = postgres.NewMerger(postgres.MergerConfig{
		Store: a.store, Pool: a.pool, NewID: uuid.NewString, Clock: a.clock, Metrics: a.metrics.Registerer, Logger: a.logger,
	})
	a.searches = searches.New(searches.Config{
		Store: a.store, AtOnce: atOnce, AnswerBytes: cmp.Or(a.config.AnswerBytes, defaultAnswers), Metrics: a.metrics.Registerer,
	})
	return nil
}

// follow keeps the published state of other services in memory.
func (a *App) follow() {
	from := state.Config{
		Brokers: a.config.Brokers, Dialer: a.dialer, SnapshotDir: state.SnapshotDir(a.config.StateDir, "ingest"), Metrics: a.metrics.Registerer,
	}
	a.accounts = bus.FollowAccounts(from, a.gate, a.logger)
	a.known, a.projects = a.credentials.Follow(from, a.logger), a.directory.Follow(from, a.logger)
	a.states = []*state.Reader{a.accounts, a.known, a.projects}
}

// SeePlaintext takes a request refused because it came over
// plain HTTP. It never waits.
func (a *App) SeePlaintext(request httpapi.PlaintextRequest) { a.watch.See(request) }

// The log store takes what has gathered in consumerWait, or consumerBytes:
// blocks compress better when they are larger.
const (
	consumerWait  = 40 * time.Millisecond
	consumerBytes = 8 << 20
)

func (a *App) buildConsumer() (err error) {
	logStore := &bus.LogStore{Store: a.store, NewID: uuid.NewString}
	a.consumer, err = consumer.New(consumer.Config{
		Brokers: a.config.Brokers, Dialer: a.dialer, Group: contract.GroupLogStore, Topic: contract.TopicLogs, Pool: a.pool, Erased: erasure.IsErased,
		AcceptLost: a.config.AcceptLostRecords,
		Handle:     logStore.Consume, Lanes: bus.Lanes(), MaxWait: consumerWait, MaxBytes: consumerBytes, Metrics: a.metrics.Registerer,
		Tracer: a.tracer,
	}, a.logger)
	if err != nil {
		return err
	}
	a.tenants, err = erasure.NewConsumer(consumer.Config{
		Brokers: a.config.Brokers, Dialer: a.dialer, Group: contract.GroupIngestTenants, Pool: a.pool, Metrics: a.metrics.Registerer,
	}, a.logger)
	return err
}

func (a *App) buildAPI() error {
	proxies, err := httpapi.ParseProxies(a.config.TrustedProxies)
	if err != nil {
		return err
	}
	router := httpapi.NewRouter(httpapi.Options{
		Logger: a.logger, Clock: a.clock, Proxies: proxies, Observe: httpapi.NewMetrics(a.metrics.Registerer).Observe, Cursors: a.cursors, Tracer: a.tracer,
	})
	httpapi.Health(router, a.Ready)
	posts := a.newIntake(proxies)
	found := &searches.Service{Directory: a.directory, Searches: a.searches}
	measureState(a.metrics.Registerer, a.gate, posts)
	guard := a.guard(proxies)
	http.Mount(router, guard, posts, &http.Logs{Service: found, Clock: a.clock})
	console.Mount(router, console.Config{Service: found, Directory: a.directory, Guard: guard})
	a.handler = router
	return nil
}

// guard is in front of everything but POST /v1/logs.
func (a *App) guard(proxies []netip.Prefix) *identity.Guard {
	return identity.NewGuard(identity.GuardConfig{
		Credentials: a.credentials, Ready: a.canRead, Limits: a.config.Limits, Proxies: proxies, Clock: a.clock, Metrics: a.metrics.Registerer,
		Used: a.meter.Seen(proxies),
	})
}

func (a *App) intakeService() *intake.Service {
	a.gate.LimitWaste(a.config.waste())
	return &intake.Service{
		Credentials: a.credentials,
		Gate:        a.gate,
		Clients:     a.config.clients(),
		Replays:     admission.NewReplays(inbox.IdempotencyWindow, cmp.Or(a.config.IdempotencyKeys, defaultIdempotency)),
		Publisher:   &bus.Publisher{Bus: a.publisher, Spread: cmp.Or(a.config.ProjectSpread, defaultSpread), Large: bus.LargeGroups()},
		Meter:       a.meter,
		Outcomes:    a.outcomes,
		Timeout:     a.config.publishTimeout(),
		Clock:       a.clock,
		NewBatch:    newBatch,
	}
}

func (a *App) newIntake(proxies []netip.Prefix) *http.Intake {
	bodies, anonymous := a.config.bodies(a.clock)
	return &http.Intake{
		Service:         a.intakeService(),
		Bodies:          bodies,
		AnonymousBodies: anonymous,
		Refusals:        httpapi.NewRefusals(),
		Proxies:         proxies,
		Limits:          ingest.DefaultLimits(),
		Strict:          a.config.Strict,
		Ready:           a.Ready,
		Metrics:         http.NewMetrics(a.metrics.Registerer),
	}
}

func (a *App) timeout() time.Duration { return a.config.timeout() }

// newBatch makes a UUIDv7; the source of random numbers does not fail.
func newBatch() string { return uuid.Must(uuid.NewV7()).String() }

// Handler serves the routes of ingest.
func (a *App) Handler() nethttp.Handler { return a.handler }

// Addr is where Run listens; empty where it does not.
func (a *App) Addr() string { return a.endpoint.Addr() }

// canAccept is nil once all state is read, and what the ledger
// has not counted is found.
func (a *App) canAccept() error {
	for _, state := range a.states {
		if err := state.Complete(); err != nil {
			return err
		}
	}
	if !a.gapRead.Load() {
		return errors.New("the log behind the ledger is not read yet")
	}
	return nil
}

// canRead is nil once credentials and projects are read.
func (a *App) canRead() error {
	return httpapi.Part("keys and projects", errors.Join(a.known.Complete(), a.projects.Complete()))
}

// Ready is canAccept, by a clock that is believed. How far the log store is
// behind is a metric: a slow database must not shut the front door.
func (a *App) Ready() error {
	if err := a.clockWatch.check(); err != nil {
		return httpapi.Part("clock", err)
	}
	return httpapi.Part("keys, projects and accounts", a.canAccept())
}

// Run works until ctx ends. It creates its topics where they are
// missing, and waits for those of others.
func (a *App) Run(ctx context.Context) error {
	defer a.Close()
	defer a.meter.Finish(a.keyFacts.Used)
	defer a.finishOutcomes()
	loops := []func(context.Context) error{a.publishUses, a.outcomes.Run, a.watch.Run, a.runLogStore, a.readGap, a.resolve, a.clockWatch.run,
		a.endpoint.Run, a.metrics.Run}
	for _, state := range a.states {
		loops = append(loops, state.Run)
	}
	return lifecycle.Run(ctx, loops...)
}

// finishOutcomes publishes what the last requests came to.
func (a *App) finishOutcomes() {
	if err := a.outcomes.Finish(); err != nil {
		a.logger.Warn("what became of the last requests is perhaps not published", slog.String("error", err.Error()))
	}
}

func (a *App) publishUses(ctx context.Context) error { return a.meter.Run(ctx, a.keyFacts.Used) }

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
