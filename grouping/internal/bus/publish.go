package bus

import (
	"context"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
)

// source is the ce_source of what grouping says.
const source = "weir/grouping"

// RelayName owns the cursor of the facts.
const RelayName = "grouping.facts"

// ReadFacts reads the outbox of weir.grouping.v1 for a relay.
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
		outgoing[i] = bus.Outgoing{
			Topic: contract.TopicGrouping, Message: newMessage(fact),
			Cursor: bus.Cursor{Transaction: fact.Transaction, Position: fact.Position},
		}
	}
	return outgoing, nil
}

func newMessage(fact postgres.Fact) *message.Message {
	attributes := contract.Attributes{ID: fact.ID, Type: fact.Type, Source: source, Time: fact.At, Organization: fact.Organization}
	m := message.NewMessage(fact.ID, fact.Body)
	for name, value := range attributes.Headers() {
		m.Metadata.Set(name, value)
	}
	m.Metadata.Set(bus.KeyMetadata, fact.Organization)
	return m
}
