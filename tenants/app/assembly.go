package app

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	sharedbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/bus/state"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/contract/calendar"
	"github.com/weirlog/weir/shared/cursorkey"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/keyfact"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/prune"
	"github.com/weirlog/weir/tenants/internal/audit"
	"github.com/weirlog/weir/tenants/internal/bus"
	"github.com/weirlog/weir/tenants/internal/challenge"
	"github.com/weirlog/weir/tenants/internal/erasing"
	"github.com/weirlog/weir/tenants/internal/keys"
	"github.com/weirlog/weir/tenants/internal/notifications"
	"github.com/weirlog/weir/tenants/internal/oidc"
	"github.com/weirlog/weir/tenants/internal/passkey"
	"github.com/weirlog/weir/tenants/internal/password"
	"github.com/weirlog/weir/tenants/internal/people"
	"github.com/weirlog/weir/tenants/internal/projections"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/registry"
	"github.com/weirlog/weir/tenants/internal/signin"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
	"github.com/weirlog/weir/tenants/internal/webhook"
)

// assemble builds the services, each on those before it.
func (a *App) assemble() error {
	for _, build := range []func() error{
		a.buildBus, a.buildWork, a.buildPeople, a.buildKeys, a.buildUsageConsumer, a.buildErasure, a.buildNotifications,
	} {
		if err := build(); err != nil {
			return err
		}
	}
	return nil
}

// buildBus makes the publisher, and the relays from the events to the topics.
func (a *App) buildBus() error {
	err := a.base.OpenPublisher(publisher.Config{RequestTimeout: deliveryTimeout, DeliveryTimeout: deliveryTimeout, CloseTimeout: closeTimeout})
	if err != nil {
		return err
	}
	a.events = projections.NewEvents(a.base.Pool)
	publication := bus.NewPublication(a.events)
	a.withdrawals = bus.NewWithdrawals(publication, a.base.Clock)
	comparing := a.comparison(publication)
	a.relay = a.base.NewRelay(relay.Config{
		Name: bus.RelayName, Read: publication.Read, Interval: relayInterval, Lease: relayLease,
		Compare: comparing.run, CompareInterval: a.config.CompareInterval, Compared: comparing.mark,
		Lacks: func() bool { return a.state.Lacks() },
	})
	a.withdrawing = a.base.NewRelay(relay.Config{Name: bus.WithdrawalsName, Read: a.withdrawals.Read})
	a.tombstones = a.base.NewRelay(relay.Config{
		Name: bus.TombstonesName, Read: bus.NewSessionTombstones(a.events, a.base.Clock).Read, Interval: tombstonesInterval,
	})
	a.pruner = a.newPruner()
	return nil
}

// buildWork builds readers and writers of events,
// and the wait until a change is in force.
func (a *App) buildWork() error {
	a.credentials = a.config.NewCredentials()
	waiter := bus.NewCredentialWaiter(a.credentials, a.relay.Wake, cmp.Or(a.config.InForceWait, time.Second), a.base.Logger)
	from := a.base.States
	from.Apply = waiter.Apply
	a.state = a.credentials.Follow(from, a.base.Logger)
	reading := httpapi.NewLimiter(httpapi.LimiterConfig{Slots: readers, Module: "weir_tenants", Noun: "reads"}, a.base.Metrics)
	a.views = query.NewReader(cmp.Or(a.base.Reads, a.base.Pool)).Limited(reading)
	a.work = unitofwork.NewWriter(unitofwork.Config{
		Events: a.events, Views: a.views, Waiter: waiter, Clock: a.base.Clock, IDs: newID, Random: rand.Reader,
		Limits: a.config.Bounds.limits(), RoleOf: people.RoleOf, Exists: registry.Exists,
	})
	return nil
}

// buildPeople builds the services of organizations, members and sign-ins.
func (a *App) buildPeople() error {
	passwords, err := password.NewHasher(a.config.passwordCost(), rand.Reader)
	if err != nil {
		return err
	}
	provider, err := a.provider()
	if err != nil {
		return err
	}
	party := a.relyingParty()
	a.signIn = signin.New(signin.Config{
		Work: a.work, Members: membersIn, Organizations: organizationsIn, Passwords: passwords,
		Challenges: challenge.New(a.base.Pool, a.base.Clock, rand.Reader), RelyingParty: party, Provider: provider,
		Dropped: a.droppedFailures().Inc, Logger: a.base.Logger,
	})
	a.tiers = a.followAccounts()
	organizations := registry.NewService(a.work, a.tiers.Tier)
	members := people.NewService(people.Config{
		Work: a.work, Organizations: organizations, Registry: registered, SignIns: a.signIn.Access, Passwords: passwords,
		SignInMethods: signInMethods(party, provider),
	})
	a.people = people.Services{
		Members: members, Invitations: people.NewInvitations(a.work, organizations), Codes: people.NewCodes(members), Mailings: people.NewMailings(a.work),
	}
	a.registry = a.buildRegistry(organizations)
	return nil
}

// buildRegistry builds the services of
// organizations and what belongs to them.
func (a *App) buildRegistry(organizations *registry.Service) registry.Services {
	projects := registry.NewProjects(organizations)
	return registry.Services{
		Organizations: organizations, Projects: projects, Tokens: registry.NewTokens(organizations),
		Policies:  registry.NewPolicies(organizations, a.people.Members),
		Deletions: registry.NewDeletions(organizations, projects, a.config.DeletionGrace, audit.Reduced),
	}
}

func (a *App) buildKeys() error {
	a.keys = keys.NewService(a.work, a.registry.Organizations, a.registry.Projects, a.tiers.RequestsPerMinute)
	a.exposures = keys.NewExposures(a.work, registry.SecurityPolicyOf)
	return nil
}

// registered is the registry as a reader sees it.
func registered(in *query.Reader) people.Registry { return registry.NewStore(in) }

// membersIn finds members as a reader sees them.
func membersIn(in *query.Reader) signin.Members { return people.NewStore(in) }

// organizationsIn finds names and policies
// of organizations, as a reader sees them.
func organizationsIn(in *query.Reader) signin.Organizations { return registry.NewStore(in) }

// followAccounts follows the accounts of organizations. Nothing
// waits for it: a limit that is too high has no effect, and
// until the tier is known the original one is shown.
func (a *App) followAccounts() *bus.Accounts {
	accounts := bus.NewAccounts()
	from := a.base.States
	from.Topic, from.Apply = contract.TopicAccounts, accounts.Apply
	a.accounts = state.NewReader(from, a.base.Logger)
	return accounts
}

// buildUsageConsumer builds the consumer of facts about keys. Uses
// that this process's own listener sees are published there, too.
func (a *App) buildUsageConsumer() (err error) {
	facts := keyfact.Publisher{Bus: a.base.Publisher, Source: bus.Source, Clock: a.base.Clock, Logger: a.base.Logger}
	a.plaintext = keyfact.NewWatch(a.credentials, facts.Exposed, a.base.Clock, a.base.Logger)
	if a.leakKeys, err = a.config.leakKeys(a.base.Clock); err != nil {
		return err
	}
	a.usage, err = a.base.NewConsumer(consumer.Config{
		Group: contract.GroupTenantsKeys, Topic: contract.TopicIngest, Erased: erasure.IsErased,
		AcceptLost: true, // uses of keys expire, and nothing is rebuilt from them
		Handle:     bus.UsageConsumer{Exposed: a.exposures.SeenInPlaintext, Used: keys.AddUsage}.Consume,
		Committed:  func([]sharedbus.Record) { a.relay.Wake() },
	})
	return err
}

// buildErasure builds what deletes and erases, and the
// consumer of modules' reports, this one's included.
func (a *App) buildErasure() (err error) {
	a.deleting = registry.NewDeletionLoop(a.registry.Deletions, a.base.Metrics, a.base.Logger)
	a.eraser = a.base.NewEraser(erasing.Tables(a.withdrawals))
	a.erasures, err = a.base.NewConsumer(consumer.Config{
		Group: contract.GroupTenantsErasures, Topic: contract.TopicErasures,
		AcceptLost: true, // a lost report leaves its deletion overdue, which a metric shows
		Handle:     bus.ErasureConsumer{Erased: registry.KeepErased}.Consume,
	})
	return err
}

// newID returns a UUID of version 7 in 32
// hexadecimal characters, so that ids sort by age.
func newID() string {
	id := uuid.Must(uuid.NewV7()) // fails only where the system has no randomness
	return hex.EncodeToString(id[:])
}

// WebhookConfig is the keys that sign webhooks,
// and the private networks they may reach.
type WebhookConfig struct {
	Keys     httpapi.Secret `help:"Keys that the secrets of webhooks follow from, each of 64 hexadecimal characters (openssl rand -hex 32), with commas between them: the first makes new secrets, the others those of webhooks from when they were first. Empty: there are no webhooks." env:"WEIR_WEBHOOK_KEYS"`
	Networks []string       `help:"Networks beside the public one that webhooks may reach, by any port and without TLS, such as 10.20.0.0/16. For development, and for receivers of one's own." env:"WEIR_WEBHOOK_NETWORKS"`
	CAFile   string         `help:"File with certificates of authorities, in PEM, that webhooks trust beside the system's." env:"WEIR_WEBHOOK_CA_FILE"`
}

func (c WebhookConfig) validate() error {
	_, keys := c.keys()
	_, networks := c.networks()
	return errors.Join(keys, networks)
}

func (c WebhookConfig) keys() (webhook.Keys, error) {
	keys, err := webhook.ParseKeys(c.Keys)
	if err != nil {
		return keys, fmt.Errorf("WEIR_WEBHOOK_KEYS: %w", err)
	}
	return keys, nil
}

func (c WebhookConfig) networks() (networks []netip.Prefix, err error) {
	for _, text := range c.Networks {
		network, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("WEIR_WEBHOOK_NETWORKS has %q: use networks such as 10.20.0.0/16", text)
		}
		networks = append(networks, network.Masked())
	}
	return networks, nil
}

func (c WebhookConfig) roots() (*x509.CertPool, error) {
	if c.CAFile == "" {
		return nil, nil //nolint:nilnil // the system's
	}
	text, err := os.ReadFile(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("cannot read WEIR_WEBHOOK_CA_FILE: %w", err)
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("WEIR_WEBHOOK_CA_FILE %q has no certificate", c.CAFile)
	}
	return roots, nil
}

func (c WebhookConfig) client() (*webhook.Client, error) {
	networks, err := c.networks()
	if err != nil {
		return nil, err
	}
	roots, err := c.roots()
	if err != nil {
		return nil, err
	}
	return webhook.NewClient(webhook.Config{Networks: networks, Roots: roots}), nil
}

// buildNotifications builds the consumers of
// facts and the sender of webhooks and mail.
func (a *App) buildNotifications() error {
	keys, err := a.config.Webhooks.keys()
	if err != nil {
		return err
	}
	client, err := a.config.Webhooks.client()
	if err != nil {
		return err
	}
	mailer, err := a.mailer()
	if err != nil {
		return err
	}
	a.webhooks = notifications.NewService(a.work, a.registry.Organizations, keys, client)
	a.sender = notifications.NewSender(notifications.SenderConfig{
		Pool: a.base.Pool, Work: a.work, Client: client, Keys: keys, Mailer: mailer, Metrics: a.base.Metrics, Logger: a.base.Logger,
	})
	a.deliveries = notifications.NewDeliveries(a.webhooks, a.sender)
	for topic, group := range map[string]string{contract.TopicLedger: contract.GroupTenantsLedger, contract.TopicGrouping: contract.GroupTenantsGrouping} {
		consumed, err := a.base.NewConsumer(a.factsOf(topic, group))
		if err != nil {
			return err
		}
		a.facts = append(a.facts, consumed)
	}
	return nil
}

func (a *App) factsOf(topic, group string) consumer.Config {
	return consumer.Config{
		Group: group, Topic: topic,
		AcceptLost: true, // facts expire, and nothing is rebuilt from them
		Handle:     bus.FactsConsumer{Deliver: notifications.Facts{Clock: a.base.Clock, Mail: a.config.Mail.configured()}.Deliver}.Consume,
		Committed:  func([]sharedbus.Record) { a.sender.Wake() },
	}
}

// notify consumes facts and sends what follows from them.
func (a *App) notify(ctx context.Context) error {
	loops := []func(context.Context) error{a.sender.Run, a.sender.Measure}
	for _, facts := range a.facts {
		loops = append(loops, facts.Run)
	}
	return lifecycle.Run(ctx, loops...)
}

// signInMethods are the ways to sign in here, beside passwords.
func signInMethods(party *passkey.RelyingParty, provider *oidc.Provider) people.SignInMethods {
	methods := people.SignInMethods{Passkeys: party != nil}
	if provider != nil {
		methods.Provider = provider.Issuer
	}
	return methods
}

// relyingParty is the site that passkeys belong to; nil: there can't be any.
func (a *App) relyingParty() *passkey.RelyingParty {
	origin, err := a.config.origin()
	if err != nil || origin == "" {
		a.base.Logger.Info("passkeys are off: the console's origin is not configured", slog.String("setting", "WEIR_CONSOLE_ORIGIN"))
		return nil
	}
	party, err := passkey.New(origin)
	if err != nil {
		a.base.Logger.Warn("passkeys are off", slog.String("error", err.Error()))
		return nil
	}
	return party
}

func (a *App) droppedFailures() prometheus.Counter {
	return promauto.With(a.base.Metrics).NewCounter(prometheus.CounterOpts{
		Name: "weir_tenants_sign_in_failures_dropped_total",
		Help: "Failed sign-ins that are not in the audit, because there were too many addresses at the same time.",
	})
}

// auditDays is the default: a year, and some time to review it.
const auditDays = 400

// minAuditDays is longer than anything in the audit is under way.
const minAuditDays = 30

func (c Config) auditKept() time.Duration {
	return time.Duration(cmp.Or(c.AuditDays, auditDays)) * 24 * time.Hour
}

// deletionsKnownSince is since when deletions are known:
// as long as the audit keeps lines of organizations.
func (c Config) deletionsKnownSince(clock func() time.Time) func() time.Time {
	known := c.Deletions.Since(clock)
	return func() time.Time { return calendar.Earlier(known(), clock().Add(-c.auditKept())) }
}

// newPruner keeps all tables of the schema within their bounds.
func (a *App) newPruner() *prune.Pruner {
	return prune.New(prune.Config{
		Pool: a.base.Pool, Tables: a.tables,
		Fixed: slices.Concat(registry.Fixed(), audit.Fixed(), notifications.Fixed(), sharedbus.Fixed(), []prune.Bound{cursorkey.Bound()}),
		Clock: a.config.Clock, Metrics: a.base.Metrics, Logger: a.base.Logger,
	})
}

func (a *App) tables(clock func() time.Time) []prune.Table {
	forget := bus.Forget(a.base.Publisher, a.base.Clock)
	return slices.Concat([]prune.Table{challenge.Table(clock)}, signin.Tables(clock), people.Tables(clock), keys.Tables(clock, forget),
		registry.Tables(clock, forget), audit.Tables(clock, a.config.auditKept(), a.withdrawals.WithdrawFacts),
		[]prune.Table{a.withdrawals, erasing.Past(a.withdrawals, a.config.deletionsKnownSince(clock)), a.config.Deletions.Table(clock)},
		notifications.Tables(clock), a.config.Retention.Tables(clock))
}

// Prune removes once what exceeds its bound; Run does it continuously.
func (a *App) Prune(ctx context.Context) error { return a.pruner.RunOnce(ctx) }

// Bounds are those of all tables of the schema.
func (a *App) Bounds() []prune.Bound { return a.pruner.Bounds() }
