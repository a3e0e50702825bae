package bus

import (
	"context"
	"encoding/json"
	"fmt"

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
