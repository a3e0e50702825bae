package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	nethttp "net/http"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/admission"
	"github.com/weirlog/weir/ingest/internal/bus"
	"github.com/weirlog/weir/ingest/internal/console"
	"github.com/weirlog/weir/ingest/internal/http"
	"github.com/weirlog/weir/ingest/internal/intake"
	"github.com/weirlog/weir/ingest/internal/outcomes"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/ingest/internal/searches"
	"github.com/weirlog/weir/ingest/internal/uncounted"
	"github.com/weirlog/weir/shared/bus/consumer"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/bus/state"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/inbox"
	"github.com/weirlog/weir/shared/keyfact"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/prune"
	"github.com/weirlog/weir/shared/service"
)

// An App is one ingest. Several may run side by side; they share
// the work of the log store.
type App struct {
	config   Config
	base     *service.Base
	migrated bool // the schema is up to date

	credentials *identity.Credentials
	directory   *identity.Directory
	gate        *admission.Gate
	store       *postgres.Store
	merger      *postgres.Merger
	searches    *searches.Searches

	states        []*state.Reader // of other services
	accounts      *state.Reader   // three of them
	known         *state.Reader   // of credentials
	projects      *state.Reader
	consumer      *consumer.Consumer
	tenants       *consumer.Consumer // of what is deleted
	pruner        *prune.Pruner
	eraser        *erasure.Eraser
	log           *bus.Log
	uncounted     *uncounted.Reader
	uncountedRead atomic.Bool
	counted       atomic.Bool // replicas are

	clockWatch *clockWatch
	logWatch   *logWatch

	meter    *keyfact.Meter
	outcomes *outcomes.Meter
	watch    *keyfact.Watch
	keyFacts *keyfact.Publisher

	handler nethttp.Handler
}

// New migrates the schema and builds the process; it starts nothing and
// waits for neither broker nor database, as entries are accepted
// without the latter. The App is for one Run.
func New(ctx context.Context, config Config, logger *slog.Logger) (*App, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("cannot start ingest: %w", err)
	}
	base, err := service.New("ingest", config.Config, logger)
	if err != nil {
		return nil, fmt.Errorf("cannot start ingest: %w", err)
	}
	a := newApp(config, base)
	if err := a.open(ctx); err != nil {
		a.Close()
		return nil, fmt.Errorf("cannot start ingest: %w", err)
	}
	return a, nil
}

func newApp(config Config, base *service.Base) *App {
	return &App{
		config: config, base: base, log: &bus.Log{Brokers: config.Brokers, Dialer: base.Dialer},
		credentials: config.NewCredentials(), directory: identity.NewDirectory(), gate: admission.NewGate(base.Clock),
	}
}

// open opens what the App stands on, and builds the rest.
func (a *App) open(ctx context.Context) (err error) {
	if a.base.Pool, err = pg.OpenLater(ctx, a.config.DatabaseURL.Reveal(), postgres.Schema); err != nil {
		return err
	}
	a.base.States.Pool = a.base.Pool
	if err := a.migrateAtStart(ctx); err != nil && !pg.IsTransient(err) {
		return err
	}
	if err := a.base.OpenReads(ctx, postgres.Schema, a.config.searches()); err != nil {
		return err
	}
	if err := a.base.OpenPublisher(publisher.Config{DeliveryTimeout: a.timeout()}); err != nil {
		return err
	}
	if err := a.build(); err != nil {
		return err
	}
	return a.base.Listen(a.handler, a.OnPlaintext)
}

func (a *App) build() error {
	a.buildStore()
	a.follow()
	a.buildMeters()
	a.uncounted = &uncounted.Reader{Log: a.log, Pool: a.base.Pool, Logger: a.base.Logger}
	a.clockWatch = &clockWatch{pool: a.base.Pool, logger: a.base.Logger}
	a.logWatch = &logWatch{counted: a.gate.Marker, ends: a.log.Ends, logger: a.base.Logger}
	if a.config.Clock == nil {
		a.clockWatch.machine = a.base.Clock
	}
	a.pruner, a.eraser = a.newPruner(), a.base.NewEraser(postgres.Erasable())
	a.buildAPI()
	return a.buildConsumers()
}

// buildMeters makes what counts uses of keys and outcomes of requests.
func (a *App) buildMeters() {
	a.keyFacts = &keyfact.Publisher{Bus: a.base.Publisher, Source: bus.Source, Clock: a.base.Clock, Logger: a.base.Logger}
	a.meter = keyfact.NewMeter(a.base.Clock)
	a.meter.Measure(a.base.Metrics)
	a.outcomes = outcomes.NewMeter(outcomes.Config{
		Process: uuid.NewString(), Interval: cmp.Or(a.config.OutcomesInterval, defaultOutcomes), Clock: a.base.Clock,
		To: &bus.Outcomes{Bus: a.base.Publisher, Clock: a.base.Clock},
	})
	a.outcomes.Measure(a.base.Metrics)
	a.watch = keyfact.NewWatch(a.credentials, a.keyFacts.Exposed, a.base.Clock, a.base.Logger)
}

// buildStore makes the log store and the searches in it.
func (a *App) buildStore() {
	limits := postgres.DefaultLimits()
	limits.Bytes, limits.Time = cmp.Or(a.config.SearchBytes, limits.Bytes), cmp.Or(a.config.SearchTime, limits.Time)
	a.store = postgres.NewStore(postgres.Config{
		Readers: a.base.Reads, Replica: a.base.Replica, Limits: limits, Clock: a.base.Clock, Metrics: a.base.Metrics,
	})
	a.merger = postgres.NewMerger(postgres.MergerConfig{
		Store: a.store, Pool: a.base.Pool, NewID: uuid.NewString, Clock: a.base.Clock, Metrics: a.base.Metrics, Logger: a.base.Logger,
	})
	a.searches = searches.New(searches.Config{
		Store: a.store, Concurrency: a.config.searches(), AnswerBytes: cmp.Or(a.config.AnswerBytes, defaultAnswers), Metrics: a.base.Metrics,
	})
}

// follow keeps the published state of other services in memory.
func (a *App) follow() {
	a.accounts = bus.FollowAccounts(a.base.States, a.gate, a.base.Logger)
	a.known, a.projects = a.credentials.Follow(a.base.States, a.base.Logger), a.directory.Follow(a.base.States, a.base.Logger)
	a.states = []*state.Reader{a.accounts, a.known, a.projects}
}

// OnPlaintext reports a request refused because it came over plain
// HTTP. It never blocks.
func (a *App) OnPlaintext(request httpapi.PlaintextRequest) { a.watch.See(request) }

func (a *App) buildConsumers() (err error) {
	logStore := &bus.LogStore{Store: a.store, NewID: uuid.NewString}
	a.consumer, err = a.base.NewConsumer(a.config.Logs.Consumer(consumer.Config{
		Group: contract.GroupLogStore, Handle: logStore.Consume, Lanes: bus.Lanes(), Tracer: a.base.Tracer,
	}))
	if err != nil {
		return err
	}
	a.tenants, err = a.base.NewConsumer(erasure.Consumer(contract.GroupIngestTenants))
	return err
}

func (a *App) buildAPI() {
	router := a.base.NewRouter(a.Ready, a.Behind)
	posts := a.newIntake()
	found := &searches.Service{Directory: a.directory, Searches: a.searches}
	measureState(a.base.Metrics, a.gate, posts)
	measureLog(a.base.Metrics, a.logIntact)
	guard := a.guard()
	http.Mount(router, guard, posts, &http.Logs{Service: found, Clock: a.base.Clock})
	console.Mount(router, console.Config{Service: found, Directory: a.directory, Guard: guard, Clock: a.base.Clock})
	a.handler = router
}

// guard is in front of everything but POST /v1/logs.
func (a *App) guard() *identity.Guard {
	return a.base.NewGuard(identity.GuardConfig{Credentials: a.credentials, Ready: a.loaded, Used: a.meter.Seen(a.base.Proxies)})
}

func (a *App) intakeService() *intake.Service {
	a.gate.LimitWaste(a.config.waste())
	return &intake.Service{
		Credentials: a.credentials,
		Gate:        a.gate,
		Clients:     a.config.clients(),
		Replays:     admission.NewReplays(inbox.IdempotencyWindow, cmp.Or(a.config.IdempotencyKeys, defaultIdempotency)),
		Publisher:   &bus.Publisher{Bus: a.base.Publisher, Spread: cmp.Or(a.config.ProjectSpread, defaultSpread), Large: bus.LargeGroups()},
		Meter:       a.meter,
		Outcomes:    a.outcomes,
		Timeout:     a.config.publishTimeout(),
		Clock:       a.base.Clock,
		NewBatch:    newBatch,
	}
}

func (a *App) newIntake() *http.Intake {
	bodies, anonymous := a.config.bodies(a.base.Clock)
	return &http.Intake{
		Service:         a.intakeService(),
		Bodies:          bodies,
		AnonymousBodies: anonymous,
		Refusals:        httpapi.NewRefusals(),
		Proxies:         a.base.Proxies,
		Limits:          ingest.DefaultLimits(),
		Strict:          a.config.Strict,
		Ready:           a.Ready,
		Metrics:         http.NewMetrics(a.base.Metrics),
	}
}

func (a *App) timeout() time.Duration { return a.config.timeout() }

// newBatch makes a UUIDv7; the source of random numbers does not fail.
func newBatch() string { return uuid.Must(uuid.NewV7()).String() }

// Handler serves the routes of ingest.
func (a *App) Handler() nethttp.Handler { return a.handler }

// Addr is where Run listens; empty where it does not.
func (a *App) Addr() string { return a.base.Endpoint.Addr() }

// canAccept is nil once all state is read, what the ledger has not
// counted is found, and replicas are counted.
func (a *App) canAccept() error {
	for _, state := range a.states {
		if err := state.Complete(); err != nil {
			return err
		}
	}
	if err := a.credentials.Compared(); err != nil {
		return err
	}
	switch {
	case !a.uncountedRead.Load():
		return errors.New("the log behind the ledger is not read yet")
	case !a.counted.Load():
		return errors.New("the replicas of ingest are not counted yet")
	}
	return nil
}

// loaded is nil once credentials and projects are read.
func (a *App) loaded() error {
	return httpapi.Part("keys and projects", errors.Join(a.known.Complete(), a.projects.Complete(), a.credentials.Compared()))
}

// Ready is canAccept with a trusted clock and a log that has what was
// applied. The log store's lag is a metric: a slow database must not
// stop the intake.
func (a *App) Ready() error {
	if err := a.clockWatch.check(); err != nil {
		return httpapi.Part("clock", err)
	}
	if err := a.canAccept(); err != nil {
		return httpapi.Part("keys, projects and accounts", err)
	}
	return a.logIntact()
}

// Behind returns what the log store has yet to apply.
func (a *App) Behind() []httpapi.Backlog {
	return service.Backlogs(service.Consuming{Part: "the log store", Consumer: a.consumer})
}

// Run works until ctx ends. It creates its topics where they are
// missing, and waits for those of others.
func (a *App) Run(ctx context.Context) error {
	defer a.Close()
	defer a.meter.Finish(a.keyFacts.Used)
	defer a.finishOutcomes()
	loops := []func(context.Context) error{
		a.publishUses, a.outcomes.Run, a.watch.Run, a.runLogStore, a.readUncounted, a.resolve, a.countReplicas, a.clockWatch.run,
		a.watchLog, a.base.Logs.Watch, a.base.Endpoint.Run, a.base.Telemetry.Run,
	}
	for _, state := range a.states {
		loops = append(loops, state.Run)
	}
	return lifecycle.Run(ctx, loops...)
}

// finishOutcomes publishes what the last requests came to.
func (a *App) finishOutcomes() {
	if err := a.outcomes.Finish(); err != nil {
		a.base.Logger.Warn("what became of the last requests is perhaps not published", slog.String("error", err.Error()))
	}
}

// watchLog waits for the accounts, which say what is counted.
func (a *App) watchLog(ctx context.Context) error {
	select {
	case <-a.accounts.Ready():
		return a.logWatch.run(ctx)
	case <-ctx.Done():
		return nil
	}
}

func (a *App) publishUses(ctx context.Context) error { return a.meter.Run(ctx, a.keyFacts.Used) }

// Close releases what New took, where the App is never run.
func (a *App) Close() { a.base.Close() }

// Schema is that of the module's tables.
func Schema() pg.Schema { return pg.Schema{Name: postgres.Schema, Migrations: postgres.Migrations()} }

// Connections is how many a process has to its database at most.
func (c Config) Connections() int { return pg.Connections(c.DatabaseURL.Reveal(), c.searches()) }

// OpenAPI describes the module's API.
func OpenAPI() []byte { return http.OpenAPI() }

// replicasInterval is how often replicas are counted. Until then a new
// one and the others may each admit all that is left.
const replicasInterval = 2 * time.Second

// countReplicas divides quotas among the running replicas. While they
// can't be counted the last number holds.
func (a *App) countReplicas(ctx context.Context) error {
	for ; ctx.Err() == nil; lifecycle.Pause(ctx, replicasInterval) {
		replicas, err := bus.Replicas(ctx, a.config.Brokers, a.base.Dialer)
		if err != nil {
			if ctx.Err() == nil {
				a.base.Logger.Warn("cannot count the replicas of ingest", slog.String("error", err.Error()))
			}
			continue
		}
		a.gate.Divide(replicas)
		a.counted.Store(true)
	}
	return nil
}
