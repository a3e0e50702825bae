package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	nethttp "net/http"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"

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

// This replica's changes are published at once, those of another within
// relayInterval. A dead relay is replaced within relayInterval, a hanging one
// within relayLease. deliveryTimeout ends a relay's sends before the next one
// begins: on a compacted topic an old state would replace a revocation.
const (
	relayInterval   = 200 * time.Millisecond
	relayLease      = 3 * time.Second
	deliveryTimeout = relayLease / 4

	tombstonesInterval = time.Minute // tombstones are a day late anyway
	closeTimeout       = time.Second // for requests under way; unpublished events stay in their table
)

// An App is one process of tenants. Several
// may share one database and the work.
type App struct {
	config      Config
	base        *service.Base
	unsubscribe *mail.Links
	relay       *relay.Relay
	tombstones  *relay.Relay // of expired sessions
	pruner      *prune.Pruner
	state       *state.Reader
	accounts    *state.Reader
	tiers       *bus.Accounts // as read by accounts
	usage       *consumer.Consumer
	plaintext   *keyfact.Watch
	leakKeys    *leak.Keys
	credentials *identity.Credentials
	events      *unitofwork.Events
	views       *query.Reader
	work        *unitofwork.Writer
	signIn      signin.Services
	people      people.Services
	registry    registry.Services
	withdrawals *bus.Withdrawals
	withdrawing *relay.Relay
	erasures    *consumer.Consumer // of modules' reports
	deleting    *registry.DeletionLoop
	eraser      *erasure.Eraser
	keys        *keys.Service
	exposures   *keys.Exposures
	webhooks    *notifications.Service
	deliveries  *notifications.Deliveries
	sender      *notifications.Sender
	facts       []*consumer.Consumer // for webhooks and mail
	handler     nethttp.Handler
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
	if err := a.build(ctx); err != nil {
		return err
	}
	if err := a.registerOperator(ctx); err != nil {
		return err
	}
	if err := a.welcomeOwner(ctx); err != nil {
		return err
	}
	return a.base.Listen(a.handler, a.plaintext.See)
}

func (a *App) build(ctx context.Context) error {
	a.unsubscribe = mail.NewLinks(a.linkOrigin(), a.base.CursorKey)
	if err := a.assemble(); err != nil {
		return err
	}
	if err := audit.WriteAll(ctx, a.base.Pool, a.events); err != nil {
		return err
	}
	a.handler = a.routes()
	return nil
}

// readers is how many queries run at once.
const readers = 4

// erase begins due deletions, erases this
// module's part of them, and finishes them.
func (a *App) erase(ctx context.Context) error {
	return lifecycle.Run(ctx, a.deleting.Run, a.eraser.Run, a.withdrawing.Run, a.erasures.Run)
}

// registerOperator registers the configured operator. A revoked
// one stays revoked; everybody else is served all the same.
func (a *App) registerOperator(ctx context.Context) error {
	if a.config.OperatorToken == "" {
		return nil
	}
	secret, err := a.config.operator()
	if err != nil {
		return err
	}
	err = a.registry.Tokens.RegisterOperator(ctx, secret)
	if errors.Is(err, registry.ErrOperatorRevoked) {
		a.base.Logger.Error("the operator's token is not in force", slog.String("error", err.Error()))
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
	if err := errors.Join(a.state.Complete(), a.credentials.Compared()); err != nil || a.config.OperatorToken == "" {
		return httpapi.Part("keys and projects", err)
	}
	if _, err := a.credentials.Lookup(a.config.OperatorToken.Reveal()); errors.Is(err, identity.ErrUnknown) {
		return httpapi.Part("the operator's token", errors.New("it is not published yet"))
	}
	return nil
}

// LogsIntact returns nil while no consumer's log has lost its end.
func (a *App) LogsIntact() error { return a.base.Logs.Intact() }

// Behind returns what the consumers for webhooks and mail have yet to apply.
func (a *App) Behind() (behind []httpapi.Backlog) {
	for _, facts := range a.facts {
		behind = append(behind, service.Backlogs(service.Consuming{Part: "webhooks and mail", Consumer: facts})...)
	}
	return behind
}

// Run works until ctx ends. It may be called once.
func (a *App) Run(ctx context.Context) error {
	defer a.Close()
	return lifecycle.Run(ctx, a.ensureTopics, a.base.Logs.Watch, a.relay.Run, a.tombstones.Run, a.state.Run, a.accounts.Run, a.usage.Run, a.erase, a.notify,
		a.plaintext.Run, a.signIn.Failures.Run, a.pruner.Run, a.base.Endpoint.Run, a.base.Telemetry.Run)
}

// ensureTopics creates the topics that tenants writes, where missing.
func (a *App) ensureTopics(ctx context.Context) error {
	return a.base.EnsureTopics(ctx, contract.Topics(0, 0))
}

// Close releases what New acquired, if Run is never called.
func (a *App) Close() { a.base.Close() }

func (a *App) routes() nethttp.Handler {
	router := a.base.NewRouter(a.Ready, a.Behind)
	guard := a.base.NewGuard(identity.GuardConfig{Credentials: a.credentials, Ready: a.Ready})
	a.mount(router.With(httpapi.LimitChanges), guard)
	return router
}

// OpenAPI describes the module's API.
func OpenAPI() []byte { return api.Describe(rooms{}.operations()) }

// rooms are the rooms with an API.
type rooms struct {
	signIn        signin.API
	people        people.API
	registry      registry.API
	keys          keys.API
	leakReports   keys.LeakReports
	notifications notifications.API
	audit         audit.API
}

func (r rooms) operations() []openapi.Operation {
	return slices.Concat(r.signIn.Operations(), r.people.Operations(), r.registry.Operations(), r.keys.Operations(),
		[]openapi.Operation{r.leakReports.Operation()}, r.notifications.Operations(), r.audit.Operations())
}

// mount adds the rooms' API and pages.
func (a *App) mount(router chi.Router, guard *identity.Guard) {
	changed := changes.NewLimiter(a.base.Clock, a.config.Bounds.changes())
	auditing := audit.NewService(audit.NewStore(a.views.From(a.base.Replica)), a.registry.Organizations)
	answers := &api.Kit{Guard: guard, Clock: a.base.Clock, TrustedProxies: a.base.Proxies}
	answers.Mount(router, changed, rooms{
		signIn: signin.NewAPI(answers, a.signIn.Sessions), people: people.NewAPI(answers, a.people), registry: registry.NewAPI(answers, a.registry),
		keys: keys.NewAPI(answers, a.keys), leakReports: keys.NewLeakReports(a.exposures, guard, a.leakKeys),
		notifications: notifications.NewAPI(answers, a.webhooks, a.deliveries), audit: audit.NewAPI(answers, auditing),
	}.operations())
	readers := directory{people.NewStore(a.views), registry.NewStore(a.views)}
	kit := pages.NewKit(pages.Config{Directory: readers, Guard: guard, Clock: a.base.Clock, IDs: newID, Origin: a.linkOrigin(), TrustedProxies: a.base.Proxies})
	ofSignIn := signin.NewPages(kit, a.signIn, a.base.Metrics)
	ofSignIn.MountOpen(router)
	ofPeople := people.NewPages(kit, a.people, ofSignIn.Entrance())
	ofPeople.MountCodes(router)
	ofPeople.MountLinks(router, a.unsubscribe)
	kit.Mount(router, changed, ofSignIn.Mount, ofPeople.Mount, registry.NewPages(kit, a.registry).Mount,
		keys.NewPages(kit, a.keys).Mount, notifications.NewPages(kit, a.webhooks, a.deliveries).Mount, audit.NewPages(kit, auditing).Mount)
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
