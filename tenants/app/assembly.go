package app

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"time"

	"github.com/google/uuid"

	sharedbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/bus/state"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/keyfact"
	"github.com/weirlog/weir/tenants/internal/audit"
	"github.com/weirlog/weir/tenants/internal/bus"
	"github.com/weirlog/weir/tenants/internal/challenge"
	"github.com/weirlog/weir/tenants/internal/erasing"
	"github.com/weirlog/weir/tenants/internal/keys"
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
