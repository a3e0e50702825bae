package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	nethttp "net/http"

	"github.com/jackc/pgx/v5"

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
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/prune"
	"github.com/weirlog/weir/shared/service"
)

// An App groups errors and serves the groups.
// Several may share one database and the work.
type App struct {
	config    Config
	base      *service.Base
	groups    *groups.Service
	logs      *consumer.Consumer
	tenants   *consumer.Consumer // of deletions
	relay     *relay.Relay
	pruner    *prune.Pruner
	eraser    *erasure.Eraser
	keys      keys
	directory *identity.Directory
	projects  *state.Reader
	handler   nethttp.Handler
}

// New connects, migrates the schema and builds the process, without
// waiting for a broker. Nothing runs until Run, which may be called once.
func New(ctx context.Context, config Config, logger *slog.Logger) (*App, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("cannot start grouping: %w", err)
	}
	base, err := service.New("grouping", config.Config, logger)
	if err != nil {
		return nil, fmt.Errorf("cannot start grouping: %w", err)
	}
	a := &App{config: config, base: base, directory: identity.NewDirectory()}
	if err := a.open(ctx); err != nil {
		a.Close()
		return nil, fmt.Errorf("cannot start grouping: %w", err)
	}
	return a, nil
}

// open opens what the App stands on, and builds the rest.
func (a *App) open(ctx context.Context) error {
	if err := a.base.OpenDatabase(ctx, Schema()); err != nil {
		return err
	}
	if err := a.base.OpenReads(ctx, postgres.Schema, a.config.reads()); err != nil {
		return err
	}
	if err := a.base.OpenPublisher(publisher.Config{}); err != nil {
		return err
	}
	if err := a.build(); err != nil {
		return err
	}
	return a.base.Listen(a.handler, a.keys.plaintext.See)
}

func (a *App) build() error {
	a.groups = groups.New(groups.Config{
		NewGroups: a.config.newGroups(), Projects: a.directory, Pool: a.base.Pool,
		Announce: bus.Announce, Report: bus.Report, Send: bus.SaveMessages, Read: bus.ReadEntry,
		MaxAlerts: a.config.maxAlerts(),
		Reads:     a.base.Reads, Replica: a.base.Replica, Concurrency: a.config.reads(), Clock: a.base.Clock, Metrics: a.base.Metrics,
	})
	a.relay = a.base.NewRelay(relay.Config{Name: bus.RelayName, Read: bus.Outbox().Read, Announced: true})
	a.pruner, a.eraser = a.newPruner(), a.base.NewEraser(postgres.Erasable())
	a.buildAPI()
	return a.buildConsumers()
}

func (a *App) buildConsumers() (err error) {
	count := countErrors(a.base.Metrics)
	grouper := bus.Consumer{Errors: a.groups.Errors, Count: countEffects(a.base.Metrics)}
	a.logs, err = a.base.NewConsumer(a.config.Logs.Consumer(consumer.Config{
		Group: contract.GroupGrouping, Handle: grouper.Consume, Lanes: bus.Lanes(),
		Committed: func(records []sharedbus.Record) {
			count(records)
			a.relay.Wake()
		}, MaxRecords: a.config.BatchRecords, MaxWait: a.config.BatchWait, Tracer: a.base.Tracer,
	}))
	if err != nil {
		return err
	}
	tenants := erasure.Consumer(contract.GroupGroupingTenants)
	tenants.Handle = bus.ConsumeTenants
	a.tenants, err = a.base.NewConsumer(tenants)
	return err
}

func (a *App) buildAPI() {
	a.keys, a.projects = newKeys(a.config, a.base), a.directory.Follow(a.base.States, a.base.Logger)
	router := a.base.NewRouter(a.Ready, a.Behind)
	guard := a.base.NewGuard(identity.GuardConfig{Credentials: a.keys.Credentials, Ready: a.loaded, Used: a.keys.meter.Seen(a.base.Proxies)})
	api := &http.API{Service: a.groups, Guard: guard, Projects: a.directory}
	api.Mount(router)
	console.Mount(router, console.Config{Service: a.groups, Directory: a.directory, Guard: guard, Clock: a.base.Clock})
	a.handler = router
}

// Handler serves the routes of this module.
func (a *App) Handler() nethttp.Handler { return a.handler }

// Addr is where Run listens; empty where it does not.
func (a *App) Addr() string { return a.base.Endpoint.Addr() }

// loaded is nil once credentials and projects are loaded.
func (a *App) loaded() error {
	return httpapi.Part("keys and projects", errors.Join(a.keys.reader.Complete(), a.projects.Complete(), a.keys.Compared()))
}

// Ready is nil once credentials and projects are read and the consumer
// works. Answers are as fresh as what it has applied.
func (a *App) Ready() error {
	return errors.Join(a.loaded(), httpapi.Part("the consumer of entries", a.logs.Ready()))
}

// LogsIntact returns nil while no consumer's log has lost its end.
func (a *App) LogsIntact() error { return a.base.Logs.Intact() }

// Behind returns what the consumer has yet to apply.
func (a *App) Behind() []httpapi.Backlog {
	return service.Backlogs(service.Consuming{Part: "the consumer of entries", Consumer: a.logs})
}

// Run works until ctx ends. It waits until
// others have created the topics that it reads.
func (a *App) Run(ctx context.Context) error {
	defer a.Close()
	ctx, stop := a.base.Endpoint.Leaving(ctx)
	defer stop()
	defer a.keys.meter.Finish(a.keys.facts.Used)
	return lifecycle.Run(ctx, a.ensureTopic, a.base.Logs.Watch, a.logs.Run, a.tenants.Run, a.eraser.Run, a.relay.Run, a.keys.reader.Run, a.projects.Run,
		a.pruner.Run, a.keys.plaintext.Run, a.keys.publishUses, a.runJobs, a.base.Endpoint.Run, a.base.Telemetry.Run)
}

// Close releases what New acquired, if Run is never called.
func (a *App) Close() { a.base.Close() }

// ensureTopic creates weir.grouping.v1,
// grouping's topic, where it is missing.
func (a *App) ensureTopic(ctx context.Context) error {
	return a.base.EnsureTopics(ctx, contract.Topics(0, 0))
}

// Schema is that of the module's tables.
func Schema() pg.Schema { return pg.Schema{Name: postgres.Schema, Migrations: postgres.Migrations()} }

// Holders returns whose groups and source maps there are. tx acts as the system, in the
// module's schema.
func Holders(ctx context.Context, tx pgx.Tx) ([]erasure.Deletion, error) {
	return postgres.Holders(ctx, tx)
}

// Holding returns how many groups an organization or a project has. tx is as for Holders.
func Holding(ctx context.Context, tx pgx.Tx, of erasure.Deletion) (erasure.Holding, error) {
	return postgres.Holding(ctx, tx, of)
}

// Outboxes are the tables that are published.
func Outboxes() []relay.Source { return []relay.Source{{Relay: bus.RelayName, Table: "facts"}} }

// relays is how many relays publish, each on its own connection.
const relays = 1

// Connections is a process's most database connections.
func (c Config) Connections() int { return pg.Connections(c.DatabaseURL.Reveal(), c.reads()) + relays }

// OpenAPI describes the module's API.
func OpenAPI() []byte { return http.OpenAPI() }

// RebuildDecisions makes the columns of all groups that follow from decisions
// again from these. A service may run meanwhile.
func RebuildDecisions(ctx context.Context, config Config) error {
	pool, err := pg.Open(ctx, config.DatabaseURL.Reveal(), postgres.Schema)
	if err != nil {
		return fmt.Errorf("cannot open the database: %w", err)
	}
	defer pool.Close()
	return groups.RebuildDecisions(ctx, pool)
}
