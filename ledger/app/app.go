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

	"github.com/jackc/pgx/v5"

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
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/keyfact"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/prune"
	"github.com/weirlog/weir/shared/service"
)

// An App is one ledger process. Several may share a database and the work.
type App struct {
	config    Config
	base      *service.Base
	log       *bus.Log
	services  *services.Services
	consuming []service.Consuming
	relay     *relay.Relay
	known     known
	checker   *integrity.Checker
	pruner    *prune.Pruner
	loops     []func(context.Context) error // what else runs beside the consumers
	plaintext *keyfact.Watch
	handler   nethttp.Handler
}

// known is what the process knows of keys and projects.
type known struct {
	credentials *state.Reader
	compared    func() error // of the credentials
	directory   *identity.Directory
	projects    *state.Reader // feeds it
}

// loaded returns nil once credentials and projects are loaded.
func (k known) loaded() error {
	return httpapi.Part("keys and projects", errors.Join(k.credentials.Complete(), k.projects.Complete(), k.compared()))
}

// New connects, migrates the schema and builds the process. It starts
// nothing and does not wait for a broker. The App is for one Run.
func New(ctx context.Context, config Config, logger *slog.Logger) (*App, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("cannot start the ledger: %w", err)
	}
	base, err := service.New("ledger", config.Config, logger)
	if err != nil {
		return nil, fmt.Errorf("cannot start the ledger: %w", err)
	}
	a := &App{
		config: config, base: base, log: &bus.Log{Brokers: config.Brokers, Dialer: base.Dialer}, known: known{directory: identity.NewDirectory()},
	}
	if err := a.open(ctx); err != nil {
		a.Close()
		return nil, fmt.Errorf("cannot start the ledger: %w", err)
	}
	return a, nil
}

// open opens what the App stands on, and builds the rest.
func (a *App) open(ctx context.Context) error {
	if err := a.base.OpenDatabase(ctx, Schema()); err != nil {
		return err
	}
	err := pg.InTxAsSystem(ctx, a.base.Pool, func(tx pgx.Tx) error {
		return postgres.RecordTerms(ctx, tx, a.config.rules(), a.config.kept())
	})
	if err != nil {
		return fmt.Errorf("cannot record the terms of the tiers and the retention: %w", err)
	}
	if err := a.base.OpenReads(ctx, postgres.Schema, readers); err != nil {
		return err
	}
	if err := a.base.OpenPublisher(publisher.Config{}); err != nil {
		return err
	}
	a.buildServices()
	if err := a.buildConsumers(); err != nil {
		return err
	}
	a.buildLoops()
	a.buildAPI()
	return a.base.Listen(a.handler, a.plaintext.See)
}

func (a *App) buildServices() {
	a.services = services.New(services.Config{
		Reads: services.Reads{
			Pool: a.base.Reads, Replica: a.base.Replica,
			Limiter: httpapi.NewLimiter(httpapi.LimiterConfig{Slots: readers, Module: "weir_ledger", Noun: "reads"}, a.base.Metrics),
		},
		Decisions: services.Decisions{
			Pool: a.base.Pool, Limiter: httpapi.NewLimiter(unitofwork.Deciders(deciders, longestTurn), a.base.Metrics),
			Save: bus.SaveEvents, IDs: newID, Time: a.config.databaseTime(),
		},
		Tiers: a.config.tiers(), Kept: a.config.kept(), Clock: a.base.Clock, End: a.log.End, Owns: a.known.directory.Owns, Metrics: a.base.Metrics,
	})
	a.relay = a.base.NewRelay(relay.Config{Name: bus.RelayName, Read: bus.Outbox().Read, Announced: true})
}

// buildLoops makes what runs beside the consumers.
func (a *App) buildLoops() {
	accounts := &bus.Accounts{
		Pool: a.base.Pool, Services: a.services, Publisher: a.base.Publisher,
		CaughtUp: func() bool { return a.caughtUp() == nil }, Republished: bus.NewRepublished(a.base.Metrics),
		Clock: a.base.Clock, Logger: a.base.Logger,
	}
	a.checker = integrity.NewChecker(integrity.CheckerConfig{
		Pool: a.base.Pool, Log: a.log, Kept: a.config.kept(), Interval: cmp.Or(a.config.CheckInterval, checkInterval), Clock: a.base.Clock,
		Logger: a.base.Logger, Metrics: a.base.Metrics,
	})
	advancer := &plans.Advancer{
		Service: a.services.Plans, Pool: a.base.Pool, End: a.log.End, Interval: advanceInterval, Logger: a.base.Logger, Wake: a.relay.Wake,
	}
	sealer := &integrity.Sealer{
		Pool: a.base.Pool, Time: a.config.databaseTime(), End: a.log.End, Interval: sealInterval, Logger: a.base.Logger,
		Sealed: integrity.NewSealed(a.base.Metrics), Checkpoint: integrity.NewCheckpoint(a.base.Metrics),
	}
	a.pruner = a.newPruner()
	a.loops = []func(context.Context) error{
		a.base.NewEraser(postgres.Erasable()).Run, accounts.Run, a.checker.Run, advancer.Run, sealer.Run, a.pruner.Run,
	}
}

func (a *App) buildConsumers() error {
	handler := &bus.Consumer{Services: a.services, Clock: a.base.Clock, Conflicts: bus.NewConflicts(a.base.Metrics)}
	wake := func([]sharedbus.Record) { a.relay.Wake() }
	for _, of := range []struct {
		part   string
		config consumer.Config
	}{
		{"the consumer of entries", a.config.Logs.Consumer(consumer.Config{
			Group: contract.GroupLedger, Fillers: true, Handle: handler.Logs, Committed: wake,
			MaxRecords: cmp.Or(a.config.BatchRecords, batchRecords), MaxBytes: batchBytes, MaxWait: a.config.BatchWait,
			Tracer: a.base.Tracer,
		})},
		{"the consumer of tenants", consumer.Config{
			Group: contract.GroupLedgerTenants, Topic: contract.TopicTenants, Erased: erasure.IsErased,
			AcceptLost: true, // compacted: missing records were withdrawn
			Rereads:    true, // tenants publishes again what it loses
			Handle:     handler.Tenants, Committed: wake, MaxWait: time.Millisecond,
		}},
		{"the consumer of outcomes", consumer.Config{
			Group: contract.GroupLedgerOutcomes, Topic: contract.TopicOutcomes, Erased: erasure.IsErased,
			AcceptLost: true, // charges nothing: lost records are outdated
			Handle:     handler.Outcomes, Committed: wake, MaxWait: time.Millisecond,
		}},
	} {
		made, err := a.base.NewConsumer(of.config)
		if err != nil {
			return err
		}
		a.consuming = append(a.consuming, service.Consuming{Part: of.part, Consumer: made})
	}
	return nil
}

// Defaults where the configuration has zero.
const (
	batchRecords  = 20_000   // a few hundred sums of a thousand organizations
	batchBytes    = 32 << 20 // records come with their lines
	checkInterval = 10 * time.Second
)

// advanceInterval is how often it checks what is due.
const advanceInterval = time.Second

// sealInterval is how often it checks whether an hour can be sealed.
const sealInterval = 10 * time.Second

// deciders is how many requests decide concurrently: the consumers need
// connections too.
const deciders = 3

// readers is how many requests read the database concurrently.
const readers = 4

// longestTurn is how long a request waits to decide.
const longestTurn = 10 * time.Second

// newID returns a unique id.
func newID() string { return strings.ToLower(rand.Text()) }

func (a *App) buildAPI() {
	credentials := a.config.NewCredentials()
	k := &a.known
	k.compared = credentials.Compared
	k.credentials, k.projects = credentials.Follow(a.base.States, a.base.Logger), k.directory.Follow(a.base.States, a.base.Logger)
	facts := keyfact.Publisher{Bus: a.base.Publisher, Source: bus.Outbox().Source, Clock: a.base.Clock, Logger: a.base.Logger}
	a.plaintext = keyfact.NewWatch(credentials, facts.Exposed, a.base.Clock, a.base.Logger)
	router := a.base.NewRouter(a.Ready, a.Behind)
	guard := a.base.NewGuard(identity.GuardConfig{Credentials: credentials, Ready: k.loaded})
	api := &http.API{Services: a.services, Guard: guard, StatementPage: console.StatementPage(k.directory)}
	changing := router.With(httpapi.LimitChanges)
	api.Mount(changing)
	console.Mount(changing, console.Config{Services: a.services, Directory: k.directory, Guard: guard, Operators: a.config.OperatingOrganization})
	a.handler = router
}

// Handler serves the ledger's routes.
func (a *App) Handler() nethttp.Handler { return a.handler }

// Addr is where Run listens; empty where it does not.
func (a *App) Addr() string { return a.base.Endpoint.Addr() }

// Ready returns nil once credentials and projects are loaded and all
// consumers work. Answers are as fresh as what they have applied.
func (a *App) Ready() error {
	err := a.known.loaded()
	for _, c := range a.consuming {
		err = errors.Join(err, httpapi.Part(c.Part, c.Consumer.Ready()))
	}
	return err
}

// caughtUp returns nil once all consumers have caught up.
func (a *App) caughtUp() (err error) {
	for _, c := range a.consuming {
		if _, behind := c.Consumer.Backlog(); behind {
			err = errors.Join(err, httpapi.Part(c.Part, errBehind))
		}
		err = errors.Join(err, httpapi.Part(c.Part, c.Consumer.Ready()))
	}
	return err
}

// errBehind means that a consumer has not caught up yet.
var errBehind = errors.New("it has not caught up yet")

// Behind returns what the consumers have yet to apply.
func (a *App) Behind() []httpapi.Backlog { return service.Backlogs(a.consuming...) }

// LogsIntact returns nil while no consumer's log has lost its end.
func (a *App) LogsIntact() error { return a.base.Logs.Intact() }

// Report returns the results of the running checks.
func (a *App) Report() integrity.Report { return a.checker.Report() }

// Run runs until ctx ends. It waits for topics that other modules create.
func (a *App) Run(ctx context.Context) error {
	defer a.Close()
	ctx, stop := a.base.Endpoint.Leaving(ctx)
	defer stop()
	work := []func(context.Context) error{a.ensureTopics, a.base.Logs.Watch, a.relay.Run, a.known.credentials.Run, a.known.projects.Run, a.plaintext.Run,
		a.base.Endpoint.Run, a.base.Telemetry.Run}
	for _, c := range a.consuming {
		work = append(work, c.Consumer.Run)
	}
	return lifecycle.Run(ctx, append(work, a.loops...)...)
}

// ensureTopics creates the ledger's missing topics.
func (a *App) ensureTopics(ctx context.Context) error {
	return a.base.EnsureTopics(ctx, contract.Topics(0, 0))
}

// Close releases the resources of New, for an App that is never run.
func (a *App) Close() { a.base.Close() }
