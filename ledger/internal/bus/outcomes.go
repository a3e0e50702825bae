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

// Outcomes consumes outcomes of requests: refusals by quota exhaust a period. It ignores other
// facts.
func (c *Consumer) Outcomes(ctx context.Context, tx pgx.Tx, records []bus.Record) error {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return err
	}
	var refusals []ledger.Refusal
	for _, record := range records {
		if record.Header(contract.HeaderType) != contract.TypeQuotaRefused {
			continue
		}
		refusal, err := parseRefusal(record)
		if err != nil {
			return bus.PermanentRecord(record, err)
		}
		refusals = append(refusals, refusal)
	}
	events, err := c.Service.Refuse(ctx, tx, c.Clock().UTC().Truncate(time.Microsecond), refusals)
	if err != nil {
		return err
	}
	return saveEvents(ctx, tx, events) // the last of all, as in Logs
}

func parseRefusal(record bus.Record) (ledger.Refusal, error) {
	var fact contract.QuotaRefused
	if err := json.Unmarshal(record.Value, &fact); err != nil {
		return ledger.Refusal{}, fmt.Errorf("cannot read the event %q: %w", record.Header(contract.HeaderID), err)
	}
	refusal := ledger.Refusal{
		Organization: fact.Organization, Environment: fact.Environment, Reason: fact.Reason, Bytes: fact.Bytes, Remaining: fact.Remaining,
		Quota: fact.Quota, PeriodStart: fact.PeriodStart.UTC(), Exhausts: fact.Exhausts, Requests: fact.Requests,
		Cause: ledger.Cause{
			Event: fact.RequestID, Source: ledger.FromOutcomes, Partition: record.Partition, Offset: record.Offset,
			At: fact.At.UTC().Truncate(time.Microsecond), Project: fact.Project, Key: fact.APIKey,
		},
	}
	return refusal, refusal.Validate()
}
