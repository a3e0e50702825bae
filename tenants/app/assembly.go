package app

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"slices"
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
	"github.com/weirlog/weir/shared/cursorkey"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/keyfact"
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
)

// assemble builds the services, each on those before it.
func (a *App) assemble() error {
	for _, build := range []func() error{
		a.buildBus, a.buildWork, a.buildRooms, a.buildUsageConsumer, a.buildErasure, a.buildNotifications,
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
	a.out.withdrawals = bus.NewWithdrawals(publication, a.base.Clock)
	comparing := &comparison{app: a, publication: publication}
	a.out.relay = a.base.NewRelay(relay.Config{
		Name: bus.RelayName, Read: publication.Read, Interval: relayInterval, Lease: relayLease, Announced: true,
		Comparisons: relay.Comparisons{
			Compare: comparing.run, Interval: a.config.CompareInterval, Lacks: func() bool { return a.in.state.Lacks() }, Compared: comparing.mark,
		},
	})
	a.out.withdrawing = a.base.NewRelay(relay.Config{Name: bus.WithdrawalsName, Read: a.out.withdrawals.Read, Interval: withdrawalsInterval})
	a.out.tombstones = a.base.NewRelay(relay.Config{
		Name: bus.TombstonesName, Read: bus.NewSessionTombstones(a.events, a.base.Clock).Read, Interval: tombstonesInterval,
	})
	a.pruner = prune.New(prune.Config{
		Pool: a.base.Pool, Tables: a.tables,
		Fixed: slices.Concat(registry.Fixed(), audit.Fixed(), notifications.Fixed(), sharedbus.Fixed(), []prune.Bound{cursorkey.Bound()}),
		Clock: a.config.Clock, Metrics: a.base.Metrics, Logger: a.base.Logger,
	})
	return nil
}

// buildWork builds readers and writers of events, the wait until a
// change is in force, and what follows credentials and accounts.
func (a *App) buildWork() error {
	a.in.credentials = a.config.NewCredentials()
	waiter := bus.NewCredentialWaiter(a.in.credentials, a.out.relay.Wake, cmp.Or(a.config.InForceWait, time.Second), a.base.Logger)
	from := a.base.States
	from.Apply = waiter.Apply
	a.in.state = a.in.credentials.Follow(from, a.base.Logger)
	// nothing waits for accounts: a limit that is too high has no effect, and
	// until the tier is known the original one is shown
	a.in.tiers = bus.NewAccounts()
	from.Topic, from.Apply = contract.TopicAccounts, a.in.tiers.Apply
	a.in.accounts = state.NewReader(from, a.base.Logger)
	reading := httpapi.NewLimiter(httpapi.LimiterConfig{Slots: readers, Module: "weir_tenants", Noun: "reads"}, a.base.Metrics)
	a.views = query.NewReader(cmp.Or(a.base.Reads, a.base.Pool)).Limited(reading)
	a.work = unitofwork.NewWriter(unitofwork.Config{
		Events: a.events, Views: a.views, Waiter: waiter, Clock: a.base.Clock, IDs: newID, Random: rand.Reader,
		Limits: a.config.Bounds.limits(), RoleOf: people.RoleOf, Exists: registry.Exists,
	})
	return nil
}

// buildRooms builds the services of sign-ins, organizations, members and keys.
func (a *App) buildRooms() error {
	passwords, err := password.NewHasher(a.config.passwordCost(), rand.Reader)
	if err != nil {
		return err
	}
	provider, err := a.config.provider(a.base.Clock)
	if err != nil {
		return err
	}
	party := a.config.relyingParty(a.base.Logger)
	a.rooms.signIn = signin.New(signin.Config{
		Work: a.work, Members: membersIn, Organizations: organizationsIn, Passwords: passwords,
		Challenges: challenge.New(a.base.Pool, a.base.Clock, rand.Reader), RelyingParty: party, Provider: provider,
		Dropped: droppedFailures(a.base.Metrics).Inc, Logger: a.base.Logger,
	})
	organizations := registry.NewService(a.work, a.in.tiers.Tier)
	members := people.NewService(people.Config{
		Work: a.work, Organizations: organizations, Registry: registered, SignIns: a.rooms.signIn.Access, Passwords: passwords,
		SignInMethods: signInMethods(party, provider),
	})
	a.rooms.People = people.Services{
		Members: members, Invitations: people.NewInvitations(a.work, organizations), Codes: people.NewCodes(members), Mailings: people.NewMailings(a.work),
	}
	projects := registry.NewProjects(organizations)
	a.rooms.Registry = registry.Services{
		Organizations: organizations, Projects: projects, Tokens: registry.NewTokens(organizations),
		Policies:  registry.NewPolicies(organizations, members),
		Deletions: registry.NewDeletions(organizations, projects, a.config.DeletionGrace, audit.Reduced),
	}
	a.rooms.Keys = keys.NewService(a.work, organizations, projects, a.in.tiers.RequestsPerMinute)
	a.rooms.exposures = keys.NewExposures(a.work, registry.SecurityPolicyOf)
	return nil
}

// registered is the registry as a reader sees it.
func registered(in *query.Reader) people.Registry { return registry.NewStore(in) }

// membersIn finds members as a reader sees them.
func membersIn(in *query.Reader) signin.Members { return people.NewStore(in) }

// organizationsIn finds names and policies
// of organizations, as a reader sees them.
func organizationsIn(in *query.Reader) signin.Organizations { return registry.NewStore(in) }

// buildUsageConsumer builds the consumer of facts about keys. Uses
// that this process's own listener sees are published there, too.
func (a *App) buildUsageConsumer() (err error) {
	facts := keyfact.Publisher{Bus: a.base.Publisher, Source: bus.Source, Clock: a.base.Clock, Logger: a.base.Logger}
	a.in.plaintext = keyfact.NewWatch(a.in.credentials, facts.Exposed, a.base.Clock, a.base.Logger)
	if a.rooms.leakKeys, err = a.config.Leaks.keys(a.base.Clock); err != nil {
		return err
	}
	a.in.usage, err = a.base.NewConsumer(consumer.Config{
		Group: contract.GroupTenantsKeys, Topic: contract.TopicIngest, Erased: erasure.IsErased,
		AcceptLost: true, // uses of keys expire, and nothing is rebuilt from them
		Handle:     bus.UsageConsumer{Exposed: a.rooms.exposures.SeenInPlaintext, Used: keys.AddUsage}.Consume,
		Committed:  func([]sharedbus.Record) { a.out.relay.Wake() },
	})
	return err
}

// buildErasure builds what deletes and erases, and the
// consumer of modules' reports, this one's included.
func (a *App) buildErasure() (err error) {
	a.deletions.loop = registry.NewDeletionLoop(a.rooms.Registry.Deletions, a.base.Metrics, a.base.Logger)
	a.deletions.eraser = a.base.NewEraser(erasing.Tables(a.out.withdrawals))
	a.deletions.reports, err = a.base.NewConsumer(consumer.Config{
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

// reportBatch is how many records one transaction takes where some are for the audit: others wait meanwhile to append.
const reportBatch = 50

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
	mailer, err := a.config.mailer(a.rooms.unsubscribe)
	if err != nil {
		return err
	}
	a.rooms.webhooks = notifications.NewService(a.work, a.rooms.Registry.Organizations, keys, client)
	a.notices.sender = notifications.NewSender(notifications.SenderConfig{
		Pool: a.base.Pool, Work: a.work, Client: client, Keys: keys, Origin: a.config.linkOrigin(), Mailer: mailer, Metrics: a.base.Metrics, Logger: a.base.Logger,
	})
	a.rooms.deliveries = notifications.NewDeliveries(a.rooms.webhooks, a.notices.sender)
	deliver := notifications.Facts{Clock: a.base.Clock, Mail: a.config.Mail.configured()}.Deliver
	for topic, group := range map[string]string{
		contract.TopicLedger: contract.GroupTenantsLedger, contract.TopicGrouping: contract.GroupTenantsGrouping, contract.TopicAlerts: contract.GroupTenantsAlerts,
	} {
		facts, records := bus.FactsConsumer{Origin: a.config.linkOrigin(), Deliver: deliver}, 0
		if topic != contract.TopicLedger {
			facts.Report, records = audit.NewReports(a.work).Keep, reportBatch
		}
		consumed, err := a.base.NewConsumer(consumer.Config{
			Group: group, Topic: topic, MaxRecords: records,
			AcceptLost: true, // facts expire: one that was never read is also missing in the audit
			Handle:     facts.Consume,
			Committed:  func([]sharedbus.Record) { a.notices.sender.Wake() },
		})
		if err != nil {
			return err
		}
		a.notices.facts = append(a.notices.facts, consumed)
	}
	return nil
}

// signInMethods are the ways to sign in here, beside passwords.
func signInMethods(party *passkey.RelyingParty, provider *oidc.Provider) people.SignInMethods {
	methods := people.SignInMethods{Passkeys: party != nil}
	if provider != nil {
		methods.Provider = provider.Issuer
	}
	return methods
}

func droppedFailures(metrics prometheus.Registerer) prometheus.Counter {
	return promauto.With(metrics).NewCounter(prometheus.CounterOpts{
		Name: "weir_tenants_sign_in_failures_dropped_total",
		Help: "Failed sign-ins that are not in the audit, because there were too many addresses at the same time.",
	})
}

// tables are all of the schema, each kept within its bound.
func (a *App) tables(clock func() time.Time) []prune.Table {
	forget := bus.Forget(a.base.Publisher, a.base.Clock)
	return slices.Concat([]prune.Table{challenge.Table(clock)}, signin.Tables(clock), people.Tables(clock), keys.Tables(clock, forget),
		registry.Tables(clock, forget), audit.Tables(clock, a.config.auditKept(), a.out.withdrawals.WithdrawFacts),
		[]prune.Table{a.out.withdrawals, erasing.Past(a.out.withdrawals, a.config.deletionsKnownSince(clock)), a.config.Deletions.Table(clock)},
		notifications.Tables(clock), a.config.Retention.Tables(clock))
}

// Prune removes once what exceeds its bound; Run does it continuously.
func (a *App) Prune(ctx context.Context) error { return a.pruner.RunOnce(ctx) }

// Bounds are those of all tables of the schema.
func (a *App) Bounds() []prune.Bound { return a.pruner.Bounds() }
