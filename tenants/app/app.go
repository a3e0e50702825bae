package app

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	nethttp "net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

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
	"github.com/weirlog/weir/shared/telemetry"
	"github.com/weirlog/weir/shared/tracing"
	"github.com/weirlog/weir/shared/turns"
	schema "github.com/weirlog/weir/tenants/internal"
	"github.com/weirlog/weir/tenants/internal/api"
	"github.com/weirlog/weir/tenants/internal/audit"
	"github.com/weirlog/weir/tenants/internal/bus"
	"github.com/weirlog/weir/tenants/internal/challenge"
	"github.com/weirlog/weir/tenants/internal/changes"
	"github.com/weirlog/weir/tenants/internal/erasing"
	"github.com/weirlog/weir/tenants/internal/keys"
	"github.com/weirlog/weir/tenants/internal/leak"
	"github.com/weirlog/weir/tenants/internal/notifications"
	"github.com/weirlog/weir/tenants/internal/oidc"
	"github.com/weirlog/weir/tenants/internal/pages"
	"github.com/weirlog/weir/tenants/internal/passkey"
	"github.com/weirlog/weir/tenants/internal/password"
	"github.com/weirlog/weir/tenants/internal/people"
	"github.com/weirlog/weir/tenants/internal/projections"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/registry"
	"github.com/weirlog/weir/tenants/internal/signin"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
	"github.com/weirlog/weir/tenants/internal/unsubscribe"
)

// A change of this replica is published at once, one of another within relayInterval. A dead relay
// is replaced within relayInterval, one that hangs within relayLease. deliveryTimeout ends what a
// relay sends before the next one begins: on a compacted topic an old state would replace a
// revocation.
const (
	relayInterval   = 200 * time.Millisecond
	relayLease      = 3 * time.Second
	deliveryTimeout = relayLease / 4

	tombstonesInterval = time.Minute // tombstones of a day ago are not urgent
	closeTimeout       = time.Second // for what is on its way; what is not published is in the table of events
)

// An App is one process of tenants. Several may run against one database and share the work.
type App struct {
	config      Config
	clock       func() time.Time
	logger      *slog.Logger
	dialer      *sharedbus.Dialer // of the brokers
	metrics     *telemetry.Service
	tracer      *tracing.Tracer
	pool        *pgxpool.Pool
	reads       *pgxpool.Pool // for questions
	cursors     *httpapi.Cursors
	unsubscribe *unsubscribe.Links
	publisher   *publisher.Publisher
	relay       *relay.Relay
	tombstones  *relay.Relay // of sessions that are past
	pruner      *prune.Pruner
	state       *state.Reader
	accounts    *state.Reader
	usage       *consumer.Consumer
	plaintext   *exposure.Watch
	leakKeys    *leak.Keys
	credentials *identity.Credentials
	events      *unitofwork.Events
	views       *query.Reader
	work        *unitofwork.Writer
	signIn      signin.Services
	members     *people.Service
	invitations *people.Invitations
	codes       *people.Codes
	registry    *registry.Service
	tokens      *registry.Tokens
	policies    *registry.Policies
	deletions   *registry.Deletions
	withdrawals *bus.Withdrawals
	withdrawing *relay.Relay
	erasures    *consumer.Consumer // of what modules have removed
	deleting    *registry.DeletionLoop
	eraser      *erasure.Eraser
	keys        *keys.Service
	exposures   *keys.Exposures
	webhooks    *notifications.Service
	deliveries  *notifications.Deliveries
	sender      *notifications.Sender
	facts       []*consumer.Consumer // of what webhooks are sent
	proxies     []netip.Prefix
	handler     nethttp.Handler
	endpoint    atomic.Pointer[httpapi.Endpoint]
}

// New connects, brings the schema up to date, registers the operator's token and builds the
// process. It starts nothing.
func New(ctx context.Context, config Config, logger *slog.Logger) (*App, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("cannot start tenants: %w", err)
	}
	a := newApp(config, logger)
	if err := a.build(ctx); err != nil {
		a.Close()
		return nil, fmt.Errorf("cannot start tenants: %w", err)
	}
	return a, nil
}

func newApp(config Config, logger *slog.Logger) *App {
	a := &App{config: config, clock: config.Clock, logger: logger, metrics: config.Telemetry.Service("tenants", logger)}
	if a.clock == nil {
		a.clock = time.Now //nolint:forbidigo // this is where the clock of the system comes in
	}
	return a
}

func (a *App) build(ctx context.Context) (err error) {
	if a.pool, err = pg.OpenMigrated(ctx, a.config.DatabaseURL.Reveal(), schema.Name, schema.Migrations()...); err != nil {
		return err
	}
	if a.proxies, err = httpapi.ParseProxies(a.config.TrustedProxies); err != nil {
		return err
	}
	if err := a.openReads(ctx); err != nil {
		return err
	}
	if err := a.assemble(); err != nil {
		return err
	}
	if err := audit.WriteAll(ctx, a.pool, a.events); err != nil {
		return err
	}
	a.handler = a.routes()
	if err := a.registerOperator(ctx); err != nil {
		return err
	}
	return a.welcomeOwner(ctx)
}

// readers is how many questions are answered at once.
const readers = 4

// openReads opens what answers questions: connections of their own, and the key that
// cursors and links of mails are signed with.
func (a *App) openReads(ctx context.Context) (err error) {
	if a.reads, err = pg.OpenReaders(ctx, a.config.DatabaseURL.Reveal(), schema.Name, readers); err != nil {
		return err
	}
	pg.Measure(a.metrics.Registerer, map[string]*pgxpool.Pool{"writes": a.pool, "reads": a.reads})
	if a.cursors, err = cursorkey.Cursors(ctx, a.reads); err != nil {
		return err
	}
	key, err := cursorkey.Read(ctx, a.reads)
	a.unsubscribe = unsubscribe.NewLinks(a.linkOrigin(), key)
	return err
}

// assemble builds the services that carry out requests.
func (a *App) assemble() (err error) {
	if a.tracer, err = a.config.Tracing.Open("tenants", a.metrics.Registerer, a.logger); err != nil {
		return err
	}
	if a.dialer, err = a.config.BrokerAccess.Dialer(); err != nil {
		return err
	}
	a.publisher, err = publisher.New(publisher.Config{
		Brokers: a.config.Brokers, Dialer: a.dialer, RequestTimeout: deliveryTimeout, DeliveryTimeout: deliveryTimeout,
		CloseTimeout: closeTimeout, Metrics: a.metrics.Registerer,
	}, a.logger)
	if err != nil {
		return err
	}
	a.events = projections.NewEvents(a.pool)
	publication := bus.NewPublication(a.events)
	a.relay = relay.New(relay.Config{
		Pool: a.pool, Name: bus.RelayName, Publisher: a.publisher, Read: publication.Read,
		Interval: relayInterval, Lease: relayLease, Metrics: a.metrics.Registerer,
	}, a.logger)
	a.withdrawals = bus.NewWithdrawals(publication, a.clock)
	a.withdrawing = relay.New(relay.Config{
		Pool: a.pool, Name: bus.WithdrawalsName, Publisher: a.publisher, Read: a.withdrawals.Read, Metrics: a.metrics.Registerer,
	}, a.logger)
	a.tombstones = relay.New(relay.Config{
		Pool: a.pool, Name: bus.TombstonesName, Publisher: a.publisher, Read: bus.NewSessionTombstones(a.events, a.clock).Read,
		Interval: tombstonesInterval, Metrics: a.metrics.Registerer,
	}, a.logger)
	a.pruner = a.newPruner()
	a.credentials = identity.NewCredentials(a.clock)
	waiter := bus.NewCredentialWaiter(a.credentials, a.relay.Wake, cmp.Or(a.config.InForceWait, time.Second), a.logger)
	a.state = a.follow(contract.TopicCredentials, waiter.Apply)
	passwords, err := password.NewHasher(a.config.passwordCost(), rand.Reader)
	if err != nil {
		return err
	}
	provider, err := a.provider()
	if err != nil {
		return err
	}
	a.views = query.NewReader(cmp.Or(a.reads, a.pool)).InTurns(turns.New(turns.Reads(readers, "weir_tenants"), a.metrics.Registerer))
	a.work = unitofwork.NewWriter(unitofwork.Config{
		Events: a.events, Views: a.views, Waiter: waiter, Clock: a.clock, IDs: newID, Random: rand.Reader,
		Limits: a.config.Bounds.limits(), RoleOf: people.RoleOf, Exists: registry.Exists,
	})
	party := a.relyingParty()
	a.signIn = signin.New(signin.Config{
		Work: a.work, Members: membersIn, Organizations: organizationsIn, Passwords: passwords,
		Challenges: challenge.New(a.pool, a.clock, rand.Reader), RelyingParty: party, Provider: provider,
		Dropped: a.droppedFailures().Inc, Logger: a.logger,
	})
	accounts := a.followAccounts()
	a.registry = registry.NewService(a.work, accounts.Tier)
	a.members = people.NewService(people.Config{
		Work: a.work, Organizations: a.registry, Registry: registered, SignIns: a.signIn.Access, Passwords: passwords,
		SignInMethods: signInMethods(party, provider),
	})
	a.invitations, a.codes = people.NewInvitations(a.work, a.registry), people.NewCodes(a.members)
	a.tokens, a.policies = registry.NewTokens(a.registry), registry.NewPolicies(a.registry, a.members)
	a.deletions = registry.NewDeletions(a.registry, a.config.DeletionGrace, audit.Reduced)
	a.keys = keys.NewService(a.work, a.registry, accounts.RequestsPerMinute)
	a.exposures = keys.NewExposures(a.work, registry.SecurityPolicyOf)
	return errors.Join(a.buildUsageConsumer(), a.buildErasure(), a.buildNotifications())
}

// registered is what is registered of organizations, as a reader sees it.
func registered(in *query.Reader) people.Registry { return registry.NewStore(in) }

// membersIn finds who signs in.
func membersIn(in *query.Reader) signin.Members { return people.NewStore(in) }

// organizationsIn finds what the organizations of members are called and allow.
func organizationsIn(in *query.Reader) signin.Organizations { return registry.NewStore(in) }

// A directory finds who reads a page.
type directory struct {
	people.Store
	organizations
}

type organizations = registry.Store

// signInMethods are how members may sign in here beside passwords.
func signInMethods(party *passkey.RelyingParty, provider *oidc.Provider) people.SignInMethods {
	methods := people.SignInMethods{Passkeys: party != nil}
	if provider != nil {
		methods.Provider = provider.Issuer
	}
	return methods
}

// relyingParty is the site that passkeys belong to, nil where there can't be any.
func (a *App) relyingParty() *passkey.RelyingParty {
	origin, err := a.config.origin()
	if err != nil || origin == "" {
		a.logger.Info("there are no passkeys: the console's origin is not known", slog.String("setting", "WEIR_CONSOLE_ORIGIN"))
		return nil
	}
	party, err := passkey.New(origin)
	if err != nil {
		a.logger.Warn("there are no passkeys", slog.String("error", err.Error()))
		return nil
	}
	return party
}

// followAccounts follows the accounts of organizations. Nothing waits for it: a limit that is too
// high has no effect, and until the tier is known the one that an organization began with is shown.
func (a *App) followAccounts() *bus.Accounts {
	accounts := bus.NewAccounts()
	a.accounts = a.follow(contract.TopicAccounts, accounts.Apply)
	return accounts
}

// follow returns a reader that keeps a topic in memory.
func (a *App) follow(topic string, apply func(sharedbus.Record) error) *state.Reader {
	return state.NewReader(state.Config{
		Brokers: a.config.Brokers, Dialer: a.dialer, Topic: topic, Apply: apply,
		SnapshotDir: state.SnapshotDir(a.config.StateDir, "tenants"), Metrics: a.metrics.Registerer,
	}, a.logger)
}

func (a *App) droppedFailures() prometheus.Counter {
	return promauto.With(a.metrics.Registerer).NewCounter(prometheus.CounterOpts{
		Name: "weir_tenants_sign_in_failures_dropped_total",
		Help: "Failed sign-ins that are not in the audit, because there were too many addresses at the same time.",
	})
}

// buildUsageConsumer makes the consumer of facts about keys. What this process's own listener sees
// takes the same way.
func (a *App) buildUsageConsumer() (err error) {
	facts := keyfact.Publisher{Bus: a.publisher, Source: bus.Source, Clock: a.clock, Logger: a.logger}
	a.plaintext = exposure.NewWatch(a.credentials, facts.Exposed, a.clock, a.logger)
	if a.leakKeys, err = a.config.leakKeys(a.clock); err != nil {
		return err
	}
	a.usage, err = consumer.New(consumer.Config{
		Brokers: a.config.Brokers, Dialer: a.dialer, Group: contract.GroupTenantsKeys, Topic: contract.TopicIngest, Pool: a.pool, Erased: erasure.IsErased,
		AcceptLost: true, // uses of keys are kept for a while, and nothing is rebuilt from them
		Handle:     bus.UsageConsumer{Exposed: a.exposures.SeenInPlaintext, Used: keys.AddUsage}.Consume,
		Committed:  func([]sharedbus.Record) { a.relay.Wake() }, Metrics: a.metrics.Registerer,
	}, a.logger)
	return err
}

// buildErasure makes what deletes and erases, and what takes in what modules, this one too, have
// removed of what was deleted.
func (a *App) buildErasure() (err error) {
	a.deleting = registry.NewDeletionLoop(a.deletions, a.metrics.Registerer, a.logger)
	a.eraser = erasure.New(erasure.Config{
		Module: "tenants", Tables: erasing.Tables(a.withdrawals), Pool: a.pool, Bus: a.publisher, Clock: a.clock, Metrics: a.metrics.Registerer, Logger: a.logger,
	})
	a.erasures, err = consumer.New(consumer.Config{
		Brokers: a.config.Brokers, Dialer: a.dialer, Group: contract.GroupTenantsErasures, Topic: contract.TopicErasures, Pool: a.pool,
		AcceptLost: true, // a report that is gone leaves its deletion overdue, which a metric shows
		Handle:     bus.ErasureConsumer{Erased: registry.KeepErased}.Consume, Metrics: a.metrics.Registerer,
	}, a.logger)
	return err
}

// erase begins deletions when their time has come, erases what this module has of them, and
// finishes them.
func (a *App) erase(ctx context.Context) error {
	return lifecycle.Run(ctx, a.deleting.Run, a.eraser.Run, a.withdrawing.Run, a.erasures.Run)
}

func (a *App) routes() nethttp.Handler {
	router := httpapi.NewRouter(httpapi.Options{
		Logger: a.logger, Clock: a.clock, Proxies: a.proxies, Observe: httpapi.NewMetrics(a.metrics.Registerer).Observe, Cursors: a.cursors, Tracer: a.tracer,
	})
	httpapi.Health(router, a.Ready)
	guard := identity.NewGuard(identity.GuardConfig{
		Credentials: a.credentials, Ready: a.Ready, Limits: a.config.Limits, Proxies: a.proxies, Clock: a.clock, Metrics: a.metrics.Registerer,
	})
	a.mount(router, guard)
	return router
}

// mount adds the rooms' API and pages.
func (a *App) mount(router chi.Router, guard *identity.Guard) {
	changed := changes.NewLimiter(a.clock, a.config.Bounds.changes())
	auditing := audit.NewService(audit.NewStore(a.views), a.registry)
	answers := &api.Kit{Guard: guard, Clock: a.clock, TrustedProxies: a.proxies}
	description := api.Describe(audit.OpenAPI, keys.OpenAPI, notifications.OpenAPI, people.OpenAPI, registry.OpenAPI, signin.OpenAPI)
	answers.Mount(router, changed, description, signin.NewAPI(answers, a.signIn.Sessions).Mount, people.NewAPI(answers, a.members, a.invitations, a.codes).Mount,
		registry.NewAPI(answers, a.registry, a.tokens, a.policies, a.deletions).Mount, keys.NewAPI(answers, a.keys).Mount)
	answers.MountFor(router, changed, notifications.BillingScope, notifications.NewAPI(answers, a.webhooks, a.deliveries).Mount)
	audit.NewAPI(answers, auditing).Mount(router)
	keys.NewLeakReports(a.exposures, guard, a.leakKeys).Mount(router)
	readers := directory{people.NewStore(a.views), registry.NewStore(a.views)}
	kit := pages.NewKit(pages.Config{Directory: readers, Guard: guard, Clock: a.clock, IDs: newID, Origin: a.linkOrigin(), TrustedProxies: a.proxies})
	ofSignIn := signin.NewPages(kit, a.signIn, a.metrics.Registerer)
	ofSignIn.MountOpen(router)
	ofPeople := people.NewPages(kit, a.members, a.invitations, a.codes, ofSignIn.Entrance())
	ofPeople.MountCodes(router)
	ofPeople.MountLinks(router, a.unsubscribe)
	kit.Mount(router, changed, ofSignIn.Mount, ofPeople.Mount, registry.NewPages(kit, a.registry, a.tokens, a.policies, a.deletions).Mount,
		keys.NewPages(kit, a.keys).Mount, notifications.NewPages(kit, a.webhooks, a.deliveries).Mount, audit.NewPages(kit, auditing).Mount)
}

// newID returns 32 hexadecimal characters: a UUID of version 7, so that ids sort by age.
func newID() string {
	id := uuid.Must(uuid.NewV7()) // fails only where the system has no randomness
	return hex.EncodeToString(id[:])
}

// registerOperator registers the configured operator. One that was revoked stays so; the others are
// served all the same.
func (a *App) registerOperator(ctx context.Context) error {
	if a.config.OperatorToken == "" {
		return nil
	}
	secret, err := a.config.operator()
	if err != nil {
		return err
	}
	err = a.tokens.RegisterOperator(ctx, secret)
	if errors.Is(err, registry.ErrOperatorRevoked) {
		a.logger.Error("the operator can't act", slog.String("error", err.Error()))
		return nil
	}
	return err
}

// Handler serves the routes of tenants.
func (a *App) Handler() nethttp.Handler { return a.handler }

// Addr is where Run listens; empty before it does, or where no address is configured.
func (a *App) Addr() string {
	if endpoint := a.endpoint.Load(); endpoint != nil {
		return endpoint.Addr()
	}
	return ""
}

// Ready is nil once all credentials are read, the configured operator's among them.
func (a *App) Ready() error {
	if err := a.state.Complete(); err != nil || a.config.OperatorToken == "" {
		return httpapi.Part("keys and projects", err)
	}
	if _, err := a.credentials.Lookup(a.config.OperatorToken.Reveal()); errors.Is(err, identity.ErrUnknown) {
		return httpapi.Part("the operator's token", errors.New("it is not published yet"))
	}
	return nil
}

// Run works until ctx ends. It may be called once.
func (a *App) Run(ctx context.Context) error {
	defer a.Close()
	return lifecycle.Run(ctx, a.ensureTopics, a.relay.Run, a.tombstones.Run, a.state.Run, a.accounts.Run, a.usage.Run, a.erase, a.notify, a.plaintext.Run,
		a.signIn.Failures.Run, a.pruner.Run, a.serve, a.metrics.Run)
}

// ensureTopics creates the topics that tenants writes, where they are missing.
func (a *App) ensureTopics(ctx context.Context) error {
	return topics.EnsureWith(ctx, a.config.Brokers, a.dialer, contract.OwnedBy("tenants", contract.Topics(0, 0)))
}

func (a *App) serve(ctx context.Context) error {
	endpoint, err := a.config.Open(a.handler, a.logger, a.clock, a.metrics.Registerer)
	if err != nil {
		return err
	}
	endpoint.SeePlaintext(a.plaintext.See)
	a.endpoint.Store(endpoint)
	return endpoint.Run(ctx)
}

// Close releases what New took, where the App is never run.
func (a *App) Close() {
	if a.publisher != nil {
		_ = a.publisher.Close()
	}
	for _, pool := range []*pgxpool.Pool{a.reads, a.pool} {
		if pool != nil {
			pool.Close()
		}
	}
	a.tracer.Close()
}
