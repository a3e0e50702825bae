package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	nethttp "net/http"
	"time"

	"github.com/weirlog/weir/shared/bus/consumer"
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/bus/state"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/keyfact"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/prune"
	"github.com/weirlog/weir/shared/service"
	schema "github.com/weirlog/weir/tenants/internal"
	"github.com/weirlog/weir/tenants/internal/audit"
	"github.com/weirlog/weir/tenants/internal/bus"
	"github.com/weirlog/weir/tenants/internal/keys"
	"github.com/weirlog/weir/tenants/internal/leak"
	"github.com/weirlog/weir/tenants/internal/notifications"
	"github.com/weirlog/weir/tenants/internal/people"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/registry"
	"github.com/weirlog/weir/tenants/internal/signin"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
	"github.com/weirlog/weir/tenants/internal/unsubscribe"
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
	unsubscribe *unsubscribe.Links
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
	a.unsubscribe = unsubscribe.NewLinks(a.linkOrigin(), a.base.CursorKey)
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
