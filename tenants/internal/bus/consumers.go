package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	weirbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
)

// UsageConsumer consumes facts about API keys on weir.ingest.v1:
// uses are added up, and Exposed decides on exposures.
type UsageConsumer struct {
	// Exposed sets the role of its transaction itself.
	Exposed func(ctx context.Context, tx pgx.Tx, organization, key string, exposure tenants.Exposure) error
	// Used adds to the sums, in a transaction that acts as the system.
	Used func(ctx context.Context, tx pgx.Tx, used []tenants.UsedAPIKey) error
}

// Consume applies records in the transaction that moves their
// positions. The bus parks an unreadable record; unknown types
// are ignored. Exposures come first: they wait for the lock to
// append, whose holder must not wait for a row changed here.
func (n UsageConsumer) Consume(ctx context.Context, tx pgx.Tx, records []weirbus.Record) error {
	var used []tenants.UsedAPIKey
	for _, record := range records {
		var err error
		switch record.Header(contract.HeaderType) {
		case contract.TypeKeyUsed:
			used, err = readUsed(record, used)
		case contract.TypeKeyExposed:
			err = n.exposed(ctx, tx, record)
		}
		if err != nil {
			return err
		}
	}
	if err := pg.AsSystem(ctx, tx); err != nil {
		return err
	}
	return n.Used(ctx, tx, used)
}

func readUsed(record weirbus.Record, sums []tenants.UsedAPIKey) ([]tenants.UsedAPIKey, error) {
	var used contract.KeyUsed
	if err := read(record, &used); err != nil {
		return nil, err
	}
	if err := checkOwner(used.Organization, used.APIKey); err != nil {
		return nil, weirbus.PermanentRecord(record, err)
	}
	if min(used.Accepted, used.Rejected, used.Refused, used.Read) < 0 {
		return nil, weirbus.PermanentRecord(record, fmt.Errorf("the key %q can't have been used a negative number of times", used.APIKey))
	}
	u := tenants.UsedAPIKey{Organization: used.Organization, APIKey: used.APIKey, KeyUsage: tenants.KeyUsage{
		Accepted: used.Accepted, Rejected: used.Rejected, Refused: used.Refused, Read: used.Read, LastUsedAt: used.LastUsedAt,
		Address: used.Address, Client: used.Client,
	}}
	if used.FirstAcceptedAt != nil {
		u.FirstAcceptedAt = *used.FirstAcceptedAt
	}
	return append(sums, u), nil
}

func (n UsageConsumer) exposed(ctx context.Context, tx pgx.Tx, record weirbus.Record) error {
	var fact contract.KeyExposed
	if err := read(record, &fact); err != nil {
		return err
	}
	exposure := tenants.Exposure{At: fact.At, Address: fact.Address}
	switch fact.How {
	case contract.ExposedPlainHTTP:
		exposure.Kind = tenants.ExposedPlainHTTP
	case contract.ExposedForwarded:
		exposure.Kind = tenants.ExposedForwarded
	default:
		return weirbus.PermanentRecord(record, fmt.Errorf("the key %q was exposed in an unknown way: %q", fact.APIKey, fact.How))
	}
	if err := checkOwner(fact.Organization, fact.APIKey); err != nil {
		return weirbus.PermanentRecord(record, err)
	}
	return n.Exposed(ctx, tx, fact.Organization, fact.APIKey, exposure)
}

// checkOwner refuses what is not a key of one organization.
func checkOwner(organization, key string) error {
	if !tenants.IsID(organization) || !tenants.IsID(key) {
		return fmt.Errorf("%q of %q is no API key of an organization", key, organization)
	}
	return nil
}

func read(record weirbus.Record, into any) error {
	if err := json.Unmarshal(record.Value, into); err != nil {
		return weirbus.PermanentRecord(record, fmt.Errorf("cannot read a %s: %w", record.Header(contract.HeaderType), err))
	}
	return nil
}

// FactsConsumer consumes other modules' facts for webhooks and mails.
type FactsConsumer struct {
	Origin string // of links to the console, such as https://weir.example
	// Deliver queues the deliveries of facts, in
	// the transaction that moves the positions.
	Deliver func(ctx context.Context, tx pgx.Tx, facts []tenants.Fact) error
	// Report keeps a change of what another module keeps for the audit. It sets the
	// role of its transaction itself. Optional.
	Report func(ctx context.Context, tx pgx.Tx, report tenants.Report) error
}

var errNotOurs = errors.New("it names no organization, or another than its header")

// Consume applies records in the transaction that moves their positions.
// The bus parks an unreadable record; other types are ignored. Reports
// come first, as they wait for the lock to append.
func (c FactsConsumer) Consume(ctx context.Context, tx pgx.Tx, records []weirbus.Record) error {
	var facts []tenants.Fact
	for _, record := range records {
		if prefix := reported[record.Header(contract.HeaderType)]; c.Report != nil && prefix != "" {
			if err := c.report(ctx, tx, record, prefix); err != nil {
				return err
			}
		}
		notification, found := contract.NotificationOf(record.Header(contract.HeaderType))
		if !found {
			continue
		}
		fact, err := c.readFact(record, notification.Name)
		if err != nil {
			return weirbus.PermanentRecord(record, fmt.Errorf("cannot read a %s: %w", notification.Type, err))
		}
		facts = append(facts, fact)
	}
	return c.Deliver(ctx, tx, facts)
}

// reported are how the actions of each type of report begin.
var reported = map[string]string{contract.TypeErrorsChangeReported: "error_", contract.TypeIngestChangeReported: "ingest_"} // bounded by the types

func (c FactsConsumer) report(ctx context.Context, tx pgx.Tx, record weirbus.Record, prefix string) error {
	var of contract.ChangeReported
	if err := read(record, &of); err != nil {
		return err
	}
	report := tenants.Report{ID: record.Header(contract.HeaderID), Organization: of.Organization, Actor: of.Actor, Request: of.Request, Client: of.Client}
	report.Address, _ = netip.ParseAddr(of.Address) // none is unknown
	report.Change = tenants.ChangeReported{
		Project: of.Project, Action: of.Action, TargetKind: of.Target.Kind, Target: of.Target.ID, TargetName: of.Target.Name,
		Before: of.Before, After: of.After, At: of.At.UTC().Truncate(time.Microsecond),
	}
	err := report.Change.Check()
	if !strings.HasPrefix(of.Action, prefix) {
		err = fmt.Errorf("%q does not begin with %q", of.Action, prefix)
	}
	if record.Header(contract.HeaderOrganization) != of.Organization || !tenants.IsID(of.Organization) || !tenants.IsID(of.Actor) {
		err = errNotOurs
	}
	if err != nil {
		return weirbus.PermanentRecord(record, err)
	}
	if err := c.Report(ctx, tx, report); err != nil {
		return err
	}
	return pg.AsSystem(ctx, tx) // as the bus expects: it may go on to records of other organizations
}

func (c FactsConsumer) readFact(record weirbus.Record, name string) (tenants.Fact, error) {
	attributes, err := contract.ParseAttributes(record.Header)
	if err != nil {
		return tenants.Fact{}, err
	}
	var of struct{ Organization, Project string }
	if err := json.Unmarshal(record.Value, &of); err != nil {
		return tenants.Fact{}, err
	}
	if attributes.Organization != of.Organization || !tenants.IsID(of.Organization) {
		return tenants.Fact{}, errNotOurs
	}
	fact := tenants.Fact{
		ID: attributes.ID, Name: name, Organization: of.Organization, Project: of.Project, Time: attributes.Time, Published: record.Time, Data: record.Value,
	}
	fact.MailTo.Roles = []tenants.Role{tenants.Owner, tenants.Billing}
	return fact, c.address(&fact)
}

// address takes what says who gets the fact out of the data, and makes a link of
// where it leads.
func (c FactsConsumer) address(fact *tenants.Fact) error {
	var of contract.Addressed
	if err := json.Unmarshal(fact.Data, &of); err != nil || of.MailTo == nil && of.Path == "" && len(of.Webhooks) == 0 {
		return err
	}
	if of.MailTo != nil {
		fact.MailTo = tenants.MailTo{Members: of.MailTo.Members}
		for _, role := range of.MailTo.Roles {
			fact.MailTo.Roles = append(fact.MailTo.Roles, tenants.Role(role))
		}
	}
	fact.Webhooks, fact.OnlyWebhooks = of.Webhooks, of.OnlyWebhooks
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(fact.Data, &members); err != nil {
		return err
	}
	delete(members, "mail_to")
	delete(members, "webhooks")
	delete(members, "only_webhooks")
	delete(members, "path")
	link, err := json.Marshal(c.Origin + of.Path)
	if err != nil {
		return err
	}
	if members["url"] = link; of.Path == "" {
		delete(members, "url")
	}
	fact.Data, err = json.Marshal(members)
	return err
}

// ErasureConsumer consumes modules' reports
// of erased rows from weir.erasures.v1.
type ErasureConsumer struct {
	// Erased stores a module's report, in a
	// transaction that acts as the system.
	Erased func(ctx context.Context, tx pgx.Tx, of tenants.Deletable, module string, removed map[string]int64) error
}

// Consume applies records in the transaction that moves
// their positions. It ignores unknown types and modules.
func (c ErasureConsumer) Consume(ctx context.Context, tx pgx.Tx, records []weirbus.Record) error {
	for _, record := range records {
		if record.Header(contract.HeaderType) != contract.TypeErased {
			continue
		}
		var erased contract.Erased
		if err := read(record, &erased); err != nil {
			return err
		}
		if !slices.Contains(contract.ErasingModules(), erased.Module) {
			continue
		}
		if err := c.Erased(ctx, tx, tenants.Deletable{Organization: erased.Organization, Project: erased.Project}, erased.Module, erased.Removed); err != nil {
			return err
		}
	}
	return nil
}

// Accounts are the subscriptions of organizations,
// from weir.accounts.v1. Safe for concurrent use.
type Accounts struct {
	mu             sync.RWMutex
	byOrganization map[string]account // bounded by the organizations
}

type account struct {
	tier              tenants.Tier
	requestsPerMinute int
	version           int64
}

// NewAccounts returns no accounts.
func NewAccounts() *Accounts {
	return &Accounts{byOrganization: map[string]account{}}
}

// Apply applies a record of weir.accounts.v1.
func (a *Accounts) Apply(record weirbus.Record) error {
	if len(record.Value) == 0 {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.byOrganization, string(record.Key))
		return nil
	}
	if record.Header(contract.HeaderType) != contract.TypeAccountChanged {
		return nil
	}
	var changed contract.Account
	if err := json.Unmarshal(record.Value, &changed); err != nil {
		return fmt.Errorf("cannot read the account %q: %w", record.Key, err)
	}
	a.keep(string(record.Key), account{tenants.Tier(changed.Tier), changed.RequestsPerMinute, changed.Version})
	return nil
}

// keep ignores what is older than the known
// state: the ledger may publish one again.
func (a *Accounts) keep(organization string, changed account) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if changed.version >= a.byOrganization[organization].version {
		a.byOrganization[organization] = changed
	}
}

// RequestsPerMinute is an organization's limit,
// which a key's own can't exceed; 0: unknown.
func (a *Accounts) RequestsPerMinute(organization string) int {
	return a.of(organization).requestsPerMinute
}

// Tier is an organization's tier; empty: unknown.
func (a *Accounts) Tier(organization string) tenants.Tier { return a.of(organization).tier }

func (a *Accounts) of(organization string) account {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.byOrganization[organization]
}
