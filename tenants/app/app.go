package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	nethttp "net/http"
	"slices"
	"time"

	"github.com/weirlog/weir/shared/bus/consumer"
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/bus/state"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/keyfact"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/prune"
	"github.com/weirlog/weir/shared/service"
	schema "github.com/weirlog/weir/tenants/internal"
	"github.com/weirlog/weir/tenants/internal/api"
	"github.com/weirlog/weir/tenants/internal/audit"
	"github.com/weirlog/weir/tenants/internal/bus"
	"github.com/weirlog/weir/tenants/internal/changes"
	"github.com/weirlog/weir/tenants/internal/keys"
	"github.com/weirlog/weir/tenants/internal/leak"
	"github.com/weirlog/weir/tenants/internal/mail"
	"github.com/weirlog/weir/tenants/internal/notifications"
	"github.com/weirlog/weir/tenants/internal/pages"
	"github.com/weirlog/weir/tenants/internal/people"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/registry"
	"github.com/weirlog/weir/tenants/internal/signin"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// A replica's changes are published once they are announced. A dead relay is replaced within relayInterval, a hanging one
// within relayLease. deliveryTimeout ends a relay's sends before the next one
// begins: on a compacted topic an old state would replace a revocation.
const (
	relayInterval   = 200 * time.Millisecond
	relayLease      = 3 * time.Second
	deliveryTimeout = relayLease / 4

	tombstonesInterval  = time.Minute     // tombstones are a day late anyway
	withdrawalsInterval = 5 * time.Second // deletions take days
	closeTimeout        = time.Second     // for requests under way; unpublished events stay in their table
)

// An App is one process of tenants. Several
// may share one database and the work.
type App struct {
	config    Config
	base      *service.Base
	events    *unitofwork.Events
	views     *query.Reader
	work      *unitofwork.Writer
	out       publishing
	in        following
	rooms     services
	deletions deletions
	notices   notices
	pruner    *prune.Pruner
	handler   nethttp.Handler
}

// publishing is what brings the tables to the topics.
type publishing struct {
	relay       *relay.Relay
	tombstones  *relay.Relay // of expired sessions
	withdrawals *bus.Withdrawals
	withdrawing *relay.Relay
}

// following is what is read of the topics.
type following struct {
	state       *state.Reader
	credentials *identity.Credentials // as read by state
	accounts    *state.Reader
	tiers       *bus.Accounts // as read by accounts
	usage       *consumer.Consumer
	plaintext   *keyfact.Watch
}

// services are those of all rooms, with what they need of the configuration.
type services struct {
	Services
	signIn      signin.Services
	exposures   *keys.Exposures
	leakKeys    *leak.Keys
	webhooks    *notifications.Service
	deliveries  *notifications.Deliveries
	unsubscribe *mail.Links
}

// deletions begin due deletions, erase this module's
// part of them, and finish them.
type deletions struct {
	loop    *registry.DeletionLoop
	eraser  *erasure.Eraser
	reports *consumer.Consumer // of modules
}

// notices consume facts, and send what follows from them.
type notices struct {
	sender *notifications.Sender
	facts  []*consumer.Consumer
}

func (n notices) run(ctx context.Context) error {
	loops := []func(context.Context) error{n.sender.Run, n.sender.Measure}
	for _, facts := range n.facts {
		loops = append(loops, facts.Run)
	}
	return lifecycle.Run(ctx, loops...)
}

// New connects, migrates the schema, registers the operator's
// token and builds the process. Nothing runs until Run.
func New(ctx context.Context, config Config, logger *slog.Logger) (*App, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("cannot start tenants: %w", err)
	}
	base, err := service.New("tenants", config.Config, logger)
	if err != nil {
		return nil, fmt.Errorf("cannot start tenants: %w", err)
	}
	a := &App{config: config, base: base}
	if err := a.open(ctx); err != nil {
		a.Close()
		return nil, fmt.Errorf("cannot start tenants: %w", err)
	}
	return a, nil
}

// open opens what the App stands on, builds the rest, and lets in who begins.
func (a *App) open(ctx context.Context) error {
	if err := a.base.OpenDatabase(ctx, Schema()); err != nil {
		return err
	}
	if err := a.base.OpenReads(ctx, schema.Name, readers); err != nil {
		return err
	}
	a.rooms.unsubscribe = mail.NewLinks(a.config.linkOrigin(), a.base.CursorKey)
	if err := a.assemble(); err != nil {
		return err
	}
	a.handler = a.routes()
	if err := registerOperator(ctx, a.config, a.rooms.Registry.Tokens, a.base.Logger); err != nil {
		return err
	}
	if err := welcomeOwner(ctx, a.config, a.rooms.People.Codes); err != nil {
		return err
	}
	return a.base.Listen(a.handler, a.in.plaintext.See)
}

// readers is how many queries run at once.
const readers = 4

// registerOperator registers the configured operator. A revoked
// one stays revoked; everybody else is served all the same.
func registerOperator(ctx context.Context, config Config, tokens *registry.Tokens, logger *slog.Logger) error {
	if config.OperatorToken == "" {
		return nil
	}
	secret, err := config.operator()
	if err != nil {
		return err
	}
	err = tokens.RegisterOperator(ctx, secret)
	if errors.Is(err, registry.ErrOperatorRevoked) {
		logger.Error("the operator's token is not in force", slog.String("error", err.Error()))
		return nil
	}
	return err
}

// Handler serves the routes of tenants.
func (a *App) Handler() nethttp.Handler { return a.handler }

// Addr is where Run listens; empty where it does not.
func (a *App) Addr() string { return a.base.Endpoint.Addr() }

// Ready is nil once all credentials are
// read, the configured operator's included.
func (a *App) Ready() error {
	if err := errors.Join(a.in.state.Complete(), a.in.credentials.Compared()); err != nil || a.config.OperatorToken == "" {
		return httpapi.Part("keys and projects", err)
	}
	if _, err := a.in.credentials.Lookup(a.config.OperatorToken.Reveal()); errors.Is(err, identity.ErrUnknown) {
		return httpapi.Part("the operator's token", errors.New("it is not published yet"))
	}
	return nil
}

// LogsIntact returns nil while no consumer's log has lost its end.
func (a *App) LogsIntact() error { return a.base.Logs.Intact() }

// Behind returns what the consumers for webhooks and mail have yet to apply.
func (a *App) Behind() (behind []httpapi.Backlog) {
	for _, facts := range a.notices.facts {
		behind = append(behind, service.Backlogs(service.Consuming{Part: "webhooks and mail", Consumer: facts})...)
	}
	return behind
}

// Run works until ctx ends. It may be called once.
func (a *App) Run(ctx context.Context) error {
	defer a.Close()
	ctx, stop := a.base.Endpoint.Leaving(ctx)
	defer stop()
	topics := func(ctx context.Context) error { return a.base.EnsureTopics(ctx, contract.Topics(0, 0)) } // where missing
	return lifecycle.Run(ctx, topics, a.base.Logs.Watch, a.out.relay.Run, a.out.tombstones.Run, a.in.state.Run, a.in.accounts.Run, a.in.usage.Run,
		a.deletions.loop.Run, a.deletions.eraser.Run, a.out.withdrawing.Run, a.deletions.reports.Run, a.notices.run,
		a.in.plaintext.Run, a.rooms.signIn.Failures.Run, a.pruner.Run, a.base.Endpoint.Run, a.base.Telemetry.Run)
}

// Close releases what New acquired, if Run is never called.
func (a *App) Close() { a.base.Close() }

// OpenAPI describes the module's API.
func OpenAPI() []byte { return api.Describe(apis{}.operations()) }

// apis are those of the rooms.
type apis struct {
	signIn        signin.API
	people        people.API
	registry      registry.API
	keys          keys.API
	leakReports   keys.LeakReports
	notifications notifications.API
	audit         audit.API
}

func (r apis) operations() []openapi.Operation {
	return slices.Concat(r.signIn.Operations(), r.people.Operations(), r.registry.Operations(), r.keys.Operations(),
		[]openapi.Operation{r.leakReports.Operation()}, r.notifications.Operations(), r.audit.Operations())
}

// routes are the API and the pages of all rooms.
func (a *App) routes() nethttp.Handler {
	served := a.base.NewRouter(a.Ready, a.Behind)
	router, guard := served.With(httpapi.LimitChanges), a.base.NewGuard(identity.GuardConfig{Credentials: a.in.credentials, Ready: a.Ready})
	changed := changes.NewLimiter(a.base.Clock, a.config.Bounds.changes())
	auditing := audit.NewService(audit.NewStore(a.views.From(a.base.Replica)), a.rooms.Registry.Organizations)
	answers := &api.Kit{Guard: guard, Clock: a.base.Clock, TrustedProxies: a.base.Proxies}
	answers.Mount(router, changed, apis{
		signIn: signin.NewAPI(answers, a.rooms.signIn.Sessions), people: people.NewAPI(answers, a.rooms.People), registry: registry.NewAPI(answers, a.rooms.Registry),
		keys: keys.NewAPI(answers, a.rooms.Keys), leakReports: keys.NewLeakReports(a.rooms.exposures, guard, a.rooms.leakKeys),
		notifications: notifications.NewAPI(answers, a.rooms.webhooks, a.rooms.deliveries), audit: audit.NewAPI(answers, auditing),
	}.operations())
	readers := directory{people.NewStore(a.views), registry.NewStore(a.views)}
	kit := pages.NewKit(pages.Config{
		Directory: readers, Guard: guard, Clock: a.base.Clock, IDs: newID,
		Origin: a.config.linkOrigin(), CAFile: a.config.ConsoleCAFile, TrustedProxies: a.base.Proxies,
	})
	ofSignIn := signin.NewPages(kit, a.rooms.signIn, a.base.Metrics)
	ofSignIn.MountOpen(router)
	ofPeople := people.NewPages(kit, a.rooms.People, ofSignIn.Entrance())
	ofPeople.MountCodes(router)
	ofPeople.MountLinks(router, a.rooms.unsubscribe)
	kit.Mount(router, changed, ofSignIn.Mount, ofPeople.Mount, registry.NewPages(kit, a.rooms.Registry).Mount,
		keys.NewPages(kit, a.rooms.Keys).Mount, notifications.NewPages(kit, a.rooms.webhooks, a.rooms.deliveries).Mount, audit.NewPages(kit, auditing).Mount)
	return served
}

// A directory finds a page's reader.
type directory struct {
	people.Store
	organizations
}

type organizations = registry.Store

// Schema is that of the module's tables.
func Schema() pg.Schema { return pg.Schema{Name: schema.Name, Migrations: schema.Migrations()} }

// Outboxes are the tables that are published.
func Outboxes() []relay.Source {
	return []relay.Source{{Relay: bus.RelayName, Table: "events"}, {Relay: bus.WithdrawalsName, Table: "withdrawals"}}
}

// relays is how many relays publish, each on its own connection.
const relays = 3

// Connections is the most connections that a process has to its database.
func (c Config) Connections() int { return pg.Connections(c.DatabaseURL.Reveal(), readers) + relays }
