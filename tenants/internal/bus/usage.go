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

// UsageConsumer takes in what weir.ingest.v1 says of API keys: how they are used goes to the sums, and what follows from an
// exposure is decided by Exposed.
type UsageConsumer struct {
	// Exposed decides in a transaction that acts as whatever it sees fit.
	Exposed func(ctx context.Context, tx pgx.Tx, organization, key string, exposure tenants.Exposure) error
	// Used adds to the sums, in a transaction that acts as the system.
	Used func(ctx context.Context, tx pgx.Tx, used []tenants.UsedAPIKey) error
}

// Consume applies records in the transaction that also moves their positions. A record that can't be read is parked by the
// bus; one of a type that is not known is for others. Exposures come first: they wait for the turn to append, and whoever
// has it must not wait for a row that was changed here.
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

func readUsed(record weirbus.Record, used []tenants.UsedAPIKey) ([]tenants.UsedAPIKey, error) {
	var said contract.KeyUsed
	if err := read(record, &said); err != nil {
		return nil, err
	}
	if err := checkOwner(said.Organization, said.APIKey); err != nil {
		return nil, weirbus.PermanentRecord(record, err)
	}
	if min(said.Accepted, said.Rejected, said.Refused, said.Read) < 0 {
		return nil, weirbus.PermanentRecord(record, fmt.Errorf("the key %q can't have been used a negative number of times", said.APIKey))
	}
	u := tenants.UsedAPIKey{Organization: said.Organization, APIKey: said.APIKey, KeyUsage: tenants.KeyUsage{
		Accepted: said.Accepted, Rejected: said.Rejected, Refused: said.Refused, Read: said.Read, LastUsedAt: said.LastUsedAt,
		Address: said.Address, Client: said.Client,
	}}
	if said.FirstAcceptedAt != nil {
		u.FirstAcceptedAt = *said.FirstAcceptedAt
	}
	return append(used, u), nil
}

func (n UsageConsumer) exposed(ctx context.Context, tx pgx.Tx, record weirbus.Record) error {
	var said contract.KeyExposed
	if err := read(record, &said); err != nil {
		return err
	}
	exposure := tenants.Exposure{At: said.At, Address: said.Address}
	switch said.How {
	case contract.ExposedPlainHTTP:
		exposure.Kind = tenants.ExposedPlainHTTP
	case contract.ExposedForwarded:
		exposure.Kind = tenants.ExposedForwarded
	default:
		return weirbus.PermanentRecord(record, fmt.Errorf("cannot tell how the key %q was exposed: %q", said.APIKey, said.How))
	}
	if err := checkOwner(said.Organization, said.APIKey); err != nil {
		return weirbus.PermanentRecord(record, err)
	}
	return n.Exposed(ctx, tx, said.Organization, said.APIKey, exposure)
}

// checkOwner refuses what is no key of one organization.
func checkOwner(organization, key string) error {
	if !tenants.IsID(organization) || !tenants.IsID(key) {
		return fmt.Errorf("%q of %q is no API key of an organization", key, organization)
	}
	return nil
}

func read(record weirbus.Record, said any) error {
	if err := json.Unmarshal(record.Value, said); err != nil {
		return weirbus.PermanentRecord(record, fmt.Errorf("cannot read a %s: %w", record.Header(contract.HeaderType), err))
	}
	return nil
}
