package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
)

// Outcomes consumes the outcomes of requests. Quota refusals exhaust a
// period, tallies count as usage. It ignores other facts.
func (c *Consumer) Outcomes(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return err
	}
	refusals, tallies, err := parseOutcomes(records)
	if err != nil {
		return err
	}
	booked := c.Clock().UTC().Truncate(time.Microsecond)
	events, err := c.Services.Booking.Refuse(ctx, tx, booked, refusals)
	if err != nil {
		return err
	}
	if err := c.Services.Booking.Count(ctx, tx, booked, tallies); err != nil {
		return err
	}
	return SaveEvents(ctx, tx, events) // last, as in Logs
}

func parseOutcomes(records []bus.Record) (refusals []ledger.Refusal, tallies []ledger.Tally, err error) {
	for _, record := range records {
		var refusal ledger.Refusal
		var tally ledger.Tally
		switch record.Header(contract.HeaderType) {
		case contract.TypeQuotaRefused:
			refusal, err = parseRefusal(record)
			refusals = append(refusals, refusal)
		case contract.TypeRequestsCounted:
			tally, err = parseTally(record)
			tallies = append(tallies, tally)
		}
		if err != nil {
			return nil, nil, bus.PermanentRecord(record, err)
		}
	}
	return refusals, tallies, nil
}

func parseTally(record bus.Record) (ledger.Tally, error) {
	var fact contract.RequestsCounted
	if err := json.Unmarshal(record.Value, &fact); err != nil {
		return ledger.Tally{}, fmt.Errorf("cannot read the event %q: %w", record.Header(contract.HeaderID), err)
	}
	tally := ledger.Tally{Organization: fact.Organization, Process: fact.Process, Sequence: fact.Sequence, At: fact.From.UTC()}
	for _, count := range fact.Counts {
		tally.Uses = append(tally.Uses, ledger.Use{
			Organization: fact.Organization, Hour: tally.At.Truncate(time.Hour), Project: count.Project, Key: count.APIKey, Environment: count.Environment,
			Outcome: count.Outcome, Reason: count.Reason, Requests: count.Requests, Entries: count.Entries, Bytes: count.Bytes, KeyInBody: count.KeyInBody,
		})
	}
	return tally, tally.Validate()
}

func parseRefusal(record bus.Record) (ledger.Refusal, error) {
	var fact contract.QuotaRefused
	if err := json.Unmarshal(record.Value, &fact); err != nil {
		return ledger.Refusal{}, fmt.Errorf("cannot read the event %q: %w", record.Header(contract.HeaderID), err)
	}
	refusal := ledger.Refusal{
		Organization: fact.Organization, Environment: fact.Environment, Reason: fact.Reason, Bytes: fact.Bytes, Remaining: fact.Remaining,
		Quota: fact.Quota, Latch: ledger.Latch{Since: fact.Since}, PeriodStart: fact.PeriodStart.UTC(), Exhausts: fact.Exhausts, Requests: fact.Requests,
		Cause: ledger.Cause{
			Event: fact.RequestID, Source: ledger.FromOutcomes, Partition: record.Partition, Offset: record.Offset,
			At: fact.At.UTC().Truncate(time.Microsecond), Project: fact.Project, Key: fact.APIKey,
		},
	}
	switch fact.Reason {
	case contract.ReasonProjectBudget:
		refusal.Spender.Project = fact.Project
	case contract.ReasonKeyBudget:
		refusal.Spender.Key = fact.APIKey
	}
	return refusal, refusal.Validate()
}
