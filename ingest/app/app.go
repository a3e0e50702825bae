package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	nethttp "net/http"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/admission"
	"github.com/weirlog/weir/ingest/internal/bus"
	"github.com/weirlog/weir/ingest/internal/console"
	"github.com/weirlog/weir/ingest/internal/http"
	"github.com/weirlog/weir/ingest/internal/intake"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/ingest/internal/rejected"
	"github.com/weirlog/weir/ingest/internal/rules"
	"github.com/weirlog/weir/ingest/internal/saved"
	"github.com/weirlog/weir/ingest/internal/searches"
	"github.com/weirlog/weir/ingest/internal/tails"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/inbox"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/service"
)

// An App is one ingest. Several may run side by side; they share
// the work of the log store.
type App struct {
	config Config
	base   *service.Base

	followed *followed
	gate     *admission.Gate
	spending *spending
	uses     *uses
	store    *logStore
	tails    *tails.Hub

	clockWatch *clockWatch
	logWatch   *logWatch

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
	return &App{config: config, base: base, gate: admission.NewGate(base.Clock), store: &logStore{config: config, base: base}}
}

// open opens what the App stands on, and builds the rest.
func (a *App) open(ctx context.Context) (err error) {
	if a.base.Pool, err = pg.OpenLater(ctx, a.config.DatabaseURL.Reveal(), postgres.Schema); err != nil {
		return err
	}
	a.base.States.Pool = a.base.Pool
	if err := a.store.migrateAtStart(ctx); err != nil && !pg.IsTransient(err) {
		return err
	}
	if err := a.base.OpenReads(ctx, postgres.Schema, a.config.Search.concurrency()); err != nil {
		return err
	}
	if err := a.base.OpenPublisher(publisher.Config{DeliveryTimeout: a.config.Publish.timeout()}); err != nil {
		return err
	}
	if err := a.build(); err != nil {
		return err
	}
	return a.base.Listen(a.handler, a.OnPlaintext)
}

func (a *App) build() error {
	a.followed = follow(a.config.NewCredentials(), a.base, a.gate)
	a.store.book, a.store.lacks = a.followed.book, a.followed.rules.Lacks
	if err := a.store.build(); err != nil {
		return err
	}
	a.uses = newUses(a.config, a.base, a.followed.credentials)
	a.spending = newSpending(a.config, a.base, a.gate, a.followed.accounts)
	a.clockWatch = &clockWatch{pool: a.base.Pool, logger: a.base.Logger}
	a.logWatch = &logWatch{counted: a.gate.Marker, ends: a.spending.log.Ends, logger: a.base.Logger}
	if a.config.Clock == nil {
		a.clockWatch.machine = a.base.Clock
	}
	a.buildAPI()
	return nil
}

// OnPlaintext reports a request refused because it came over plain
// HTTP. It never blocks.
func (a *App) OnPlaintext(request httpapi.PlaintextRequest) { a.uses.watch.See(request) }

func (a *App) buildAPI() {
	router := a.base.NewRouter(a.Ready, a.Behind)
	posts := a.newIntake()
	found := &searches.Service{Directory: a.followed.directory, Searches: a.store.searches}
	measureState(a.base.Metrics, a.gate, posts)
	measureLog(a.base.Metrics, a.logIntact)
	guard := a.guard()
	watched := a.newTails(guard, found)
	kept := a.newSaved(found)
	refused := &rejected.Service{Pool: a.base.Pool, Searches: found, Clock: a.base.Clock}
	ruled := &rules.Service{
		Pool: a.base.Pool, Searches: found, Turns: rules.NewTurns(a.config.Search.concurrency(), a.base.Metrics),
		Save: bus.SaveRules, Saved: a.store.relay.Wake, Clock: a.base.Clock,
	}
	http.Mount(router, guard, posts, &http.Logs{Service: found, Clock: a.base.Clock}, watched, &http.Saved{Service: kept},
		&http.Rejected{Service: refused}, &http.Rules{Service: ruled, Guard: guard})
	console.Mount(router, console.Config{
		Service: found, Saved: kept, Rejected: refused, Rules: ruled, Tails: watched, Directory: a.followed.directory, Guard: guard,
		Clock: a.base.Clock,
	})
	a.handler = router
}

// newSaved makes the service of saved searches, and what evaluates their alerts.
func (a *App) newSaved(found *searches.Service) *saved.Service {
	config := a.config.Saved
	kept := &saved.Service{
		Pool: a.base.Pool, Directory: a.followed.directory, MaxSearches: cmp.Or(config.SavedSearches, defaultSavedSearches),
		MaxAlerts: cmp.Or(config.Alerts, defaultAlerts), Publish: bus.SaveNotice, Published: a.store.relay.Wake, NewID: newID, Clock: a.base.Clock,
	}
	a.store.evaluator = saved.NewEvaluator(saved.EvaluatorConfig{
		Pool: a.base.Pool, Service: kept, Searches: found, Ends: a.spending.log.Ends, Group: contract.GroupLogStore,
		Ready:    func() error { return errors.Join(a.clockWatch.check(), a.followed.loaded()) },
		Interval: config.AlertInterval, Clock: a.base.Clock, Metrics: a.base.Metrics, Logger: a.base.Logger,
	})
	return kept
}

func (a *App) newTails(guard *identity.Guard, found *searches.Service) *http.Tails {
	config := a.config.Tail
	a.tails = tails.New(tails.Config{
		Directory: a.followed.directory, Viewers: cmp.Or(config.Tails, defaultTails), Work: config.work(),
		Clock: a.base.Clock, Metrics: a.base.Metrics,
	})
	return &http.Tails{Hub: a.tails, Service: found, Guard: guard, Clock: a.base.Clock, Longest: cmp.Or(config.TailTime, defaultTailTime)}
}

// runTails reads the log for those who watch it.
func (a *App) runTails(ctx context.Context) error {
	tail := &bus.Tail{Log: a.spending.log, Hub: a.tails, Logger: a.base.Logger}
	return a.tails.Run(ctx, tail.Read, lifecycle.Warn(a.base.Logger, "cannot read the log for tails"))
}

// guard is in front of everything but POST /v1/logs.
func (a *App) guard() *identity.Guard {
	return a.base.NewGuard(identity.GuardConfig{Credentials: a.followed.credentials, Ready: a.followed.loaded, Used: a.uses.meter.Seen(a.base.Proxies)})
}

func (a *App) intakeService() *intake.Service {
	a.gate.LimitWaste(a.config.Bodies.waste())
	return &intake.Service{
		Credentials: a.followed.credentials,
		Gate:        a.gate,
		Clients:     a.config.Bodies.clients(),
		Replays:     admission.NewReplays(inbox.IdempotencyWindow, cmp.Or(a.config.IdempotencyKeys, defaultIdempotency)),
		Publisher:   &bus.Publisher{Bus: a.base.Publisher, Spread: cmp.Or(a.config.Publish.ProjectSpread, defaultSpread), Large: bus.LargeGroups()},
		Rules:       a.followed.book,
		Meter:       a.uses.meter,
		Outcomes:    a.uses.outcomes,
		Timeout:     a.config.Publish.whole(),
		Clock:       a.base.Clock,
		NewBatch:    newBatch,
	}
}

func (a *App) newIntake() *http.Intake {
	bodies, anonymous := a.config.Bodies.open(a.base.Clock)
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
		Rejected:        a.store.rejected,
	}
}

// newBatch makes a UUIDv7; the source of random numbers does not fail.
func newBatch() string { return uuid.Must(uuid.NewV7()).String() }

// newID makes the id of a saved search.
func newID() string { return strings.ReplaceAll(newBatch(), "-", "") }

// Handler serves the routes of ingest.
func (a *App) Handler() nethttp.Handler { return a.handler }

// Addr is where Run listens; empty where it does not.
func (a *App) Addr() string { return a.base.Endpoint.Addr() }

// canAccept is nil once all state is read, what the ledger has not
// counted is found, and replicas are counted.
func (a *App) canAccept() error {
	if err := a.followed.complete(); err != nil {
		return err
	}
	return a.spending.known()
}

// Ready is canAccept with a trusted clock and a log that has what was
// applied. The log store's lag is a metric: a slow database must not
// stop the intake.
func (a *App) Ready() error {
	if err := a.clockWatch.check(); err != nil {
		return httpapi.Part("clock", err)
	}
	if err := a.canAccept(); err != nil {
		return httpapi.Part("keys, projects, accounts and rules", err)
	}
	return a.logIntact()
}

// Behind returns what the log store has yet to apply.
func (a *App) Behind() []httpapi.Backlog {
	return service.Backlogs(service.Consuming{Part: "the log store", Consumer: a.store.consumer})
}

// Run works until ctx ends. It creates its topics where they are
// missing, and waits for those of others.
func (a *App) Run(ctx context.Context) error {
	defer a.Close()
	ctx, stop := a.base.Endpoint.Leaving(ctx)
	defer stop()
	defer a.uses.finish()
	defer a.store.rejected.Finish()
	return lifecycle.Run(ctx, slices.Concat(a.followed.loops(), a.uses.loops(), a.spending.loops(), []func(context.Context) error{
		func(ctx context.Context) error { return a.store.run(ctx, a.spending.sum) },
		a.runTails, a.clockWatch.run, a.watchLog, a.base.Logs.Watch, a.base.Endpoint.Run, a.base.Telemetry.Run,
	})...)
}

// watchLog waits for the accounts, which say what is counted.
func (a *App) watchLog(ctx context.Context) error {
	select {
	case <-a.followed.accounts.Ready():
		return a.logWatch.run(ctx)
	case <-ctx.Done():
		return nil
	}
}

// Close releases what New took, where the App is never run.
func (a *App) Close() { a.base.Close() }

// Schema is that of the module's tables.
func Schema() pg.Schema { return pg.Schema{Name: postgres.Schema, Migrations: postgres.Migrations()} }

// Connections is how many a process has to its database at most.
func (c Config) Connections() int {
	return pg.Connections(c.DatabaseURL.Reveal(), c.Search.concurrency()) + relays
}

// relays is how many relays publish, each on its own connection.
const relays = 1

// Holders returns whose entries and rules there are. tx acts as the system, in the
// module's schema.
func Holders(ctx context.Context, tx pgx.Tx) ([]erasure.Deletion, error) {
	return postgres.Holders(ctx, tx)
}

// Holding returns how many entries of an organization or a project are
// stored. tx is as for Holders.
func Holding(ctx context.Context, tx pgx.Tx, of erasure.Deletion) (erasure.Holding, error) {
	return postgres.Holding(ctx, tx, of)
}

// Outboxes are the tables that are published.
func Outboxes() []relay.Source { return []relay.Source{{Relay: bus.RelayName, Table: "facts"}} }

// OpenAPI describes the module's API.
func OpenAPI() []byte { return http.OpenAPI() }
