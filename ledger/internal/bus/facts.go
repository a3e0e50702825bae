package bus

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
)

// RelayName owns the cursor of the facts.
const RelayName = "ledger.facts"

// ReadFacts reads the outbox of weir.ledger.v1 for a relay.
func ReadFacts(ctx context.Context, tx pgx.Tx, after bus.Cursor, limit int) ([]bus.Outgoing, error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return nil, err
	}
	facts, err := postgres.FactsAfter(ctx, tx, after.Transaction, after.Position, limit)
	if err != nil {
		return nil, err
	}
	outgoing := make([]bus.Outgoing, len(facts))
	for i, fact := range facts {
		attributes := contract.Attributes{ID: fact.ID, Type: fact.Type, Source: source, Time: fact.At, Organization: fact.Organization}
		outgoing[i] = bus.Outgoing{
			Topic: contract.TopicLedger, Message: newMessage(attributes, fact.Organization, fact.Body),
			Cursor: bus.Cursor{Transaction: fact.Transaction, Position: fact.Position},
		}
	}
	return outgoing, nil
}
