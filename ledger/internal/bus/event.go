package bus

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/outbox"
)

// saveEvents puts events into the outbox.
func saveEvents(ctx context.Context, tx pgx.Tx, events []ledger.Event) error {
	facts := make([]outbox.Fact, len(events))
	for i, event := range events {
		facts[i] = outboxFact(event)
	}
	return outbox.Save(ctx, tx, facts)
}

// outboxFact is an event as the outbox keeps it.
func outboxFact(event ledger.Event) outbox.Fact {
	kind, body := eventBody(event)
	return outbox.Fact{Organization: event.Organization, ID: event.ID(), Type: kind, At: event.Cause.At, Body: body}
}

// eventBody is an event as weir.ledger.v1 carries it.
func eventBody(event ledger.Event) (kind string, body []byte) {
	var value any
	switch event.Kind {
	case ledger.ThresholdReached:
		kind, value = contract.TypeThresholdReached, contract.ThresholdReached{
			Organization: event.Organization, PeriodStart: event.Book.Period.Start, Percent: event.Percent,
			Quota: event.Book.Granted(), Used: event.Book.Used(), Batch: event.Cause.Batch, At: event.Cause.At,
		}
	case ledger.QuotaExhausted:
		kind, value = contract.TypeQuotaExhausted, contract.QuotaExhausted{
			Organization: event.Organization, PeriodStart: event.Book.Period.Start, PeriodEnd: event.Book.Period.End,
			Quota: event.Book.Granted(), Used: event.Book.Used(), At: event.Cause.At,
		}
	default:
		panic(fmt.Sprintf("BUG: no contract for an event of kind %d", event.Kind))
	}
	return kind, encode(value)
}
