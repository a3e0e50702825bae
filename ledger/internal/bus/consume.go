// Package bus is how the ledger hears and speaks: it charges what weir.logs.v1 says was accepted, opens accounts for the
// organizations of weir.tenants.v1, and says on weir.accounts.v1 and weir.ledger.v1 what came of it.
package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/inbox"
	"github.com/weirlog/weir/shared/pg"
)

// A Consumer applies records to the books, in the transaction that also moves their positions.
type Consumer struct {
	Store *postgres.Store
	Clock func() time.Time
}

// Logs charges accepted entries by the headers of their records; their lines are never looked at. Only what the inbox
// calls fresh is charged. The fate of a record is one of: charged; seen before, or a replay, and noted as such in its
// range; or, where its headers can't be true, parked by the bus. Any other error rolls everything back.
func (c *Consumer) Logs(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return err
	}
	charges, accepted, err := parseLogs(records)
	if err != nil {
		return err
	}
	verdicts, err := inbox.Filter(ctx, tx, accepted)
	if err != nil {
		return err
	}
	booked := c.Clock().UTC().Truncate(time.Microsecond)
	fresh, ranges := sortOut(charges, verdicts, booked)
	if err := c.Store.Charge(ctx, tx, booked, fresh); err != nil {
		return err
	}
	if err := c.Store.SaveRanges(ctx, tx, ranges); err != nil {
		return fmt.Errorf("cannot note what was applied: %w", err)
	}
	return nil
}

func parseLogs(records []bus.Record) ([]ledger.Charge, []contract.LogsAccepted, error) {
	charges := make([]ledger.Charge, len(records))
	accepted := make([]contract.LogsAccepted, len(records))
	for i, record := range records {
		logs, err := contract.ParseLogsAccepted(record.Header, nil)
		if err == nil {
			accepted[i], charges[i] = logs, chargeOf(logs, record)
			err = charges[i].Validate()
		}
		if err != nil {
			return nil, nil, bus.PermanentRecord(record, err)
		}
	}
	return charges, accepted, nil
}

func chargeOf(logs contract.LogsAccepted, record bus.Record) ledger.Charge {
	return ledger.Charge{
		Organization: logs.Organization,
		Bytes:        logs.Bytes,
		Entries:      logs.Entries,
		Errors:       logs.Errors,
		Cause: ledger.Cause{
			Event: logs.ID(), Batch: logs.Batch, Source: ledger.FromLogs,
			Partition: record.Partition, Offset: record.Offset,
			At: logs.Time.Truncate(time.Microsecond), Project: logs.Project, Key: logs.Key,
		},
	}
}

// sortOut picks what is to be charged, and adds up the ranges of the partitions.
func sortOut(charges []ledger.Charge, verdicts []inbox.Verdict, booked time.Time) ([]ledger.Charge, []postgres.Range) {
	fresh := make([]ledger.Charge, 0, len(charges))
	byPartition := map[int]*postgres.Range{}
	var order []int
	for i, charge := range charges {
		partition := charge.Cause.Partition
		r, ok := byPartition[partition]
		if !ok {
			r = postgres.NewRange(charge, booked)
			byPartition[partition] = r
			order = append(order, partition)
		}
		r.Add(charge, verdicts[i] == inbox.Fresh)
		if verdicts[i] == inbox.Fresh {
			fresh = append(fresh, charge)
		}
	}
	ranges := make([]postgres.Range, len(order))
	for i, partition := range order {
		ranges[i] = *byPartition[partition]
	}
	return fresh, ranges
}

// Tenants opens the accounts of new organizations. Other events pass by.
func (c *Consumer) Tenants(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return err
	}
	for _, record := range records {
		if record.Header(contract.HeaderType) != contract.TypeOrganizationCreated {
			continue
		}
		if err := c.organizationCreated(ctx, tx, record); err != nil {
			return err
		}
	}
	return nil
}

func (c *Consumer) organizationCreated(ctx context.Context, tx pgx.Tx, record bus.Record) error {
	var event contract.OrganizationCreated
	if err := json.Unmarshal(record.Value, &event); err != nil {
		return bus.PermanentRecord(record, fmt.Errorf("cannot read the event %q: %w", record.Header(contract.HeaderID), err))
	}
	at := event.CreatedAt.UTC().Truncate(time.Microsecond)
	if event.Organization == "" || at.Year() < ledger.FirstYear || at.Year() > ledger.LastYear {
		return bus.PermanentRecord(record, fmt.Errorf("cannot open an account for organization %q created at %s", event.Organization, at))
	}
	plan := ledger.Plan{From: at, Tier: ledger.Tier(event.Tier)}
	cause := ledger.Cause{
		Event: record.Header(contract.HeaderID), Source: ledger.FromTenants,
		Partition: record.Partition, Offset: record.Offset, At: at,
	}
	err := c.Store.StartPlan(ctx, tx, c.Clock().UTC().Truncate(time.Microsecond), event.Organization, plan, cause)
	if errors.Is(err, ledger.ErrUnknownTier) {
		return bus.PermanentRecord(record, err)
	}
	return err
}
