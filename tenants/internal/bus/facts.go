package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	weirbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/tenants"
)

// FactsConsumer consumes other modules' facts for webhooks and mails.
type FactsConsumer struct {
	// Deliver queues the deliveries of facts, in
	// the transaction that moves the positions.
	Deliver func(ctx context.Context, tx pgx.Tx, facts []tenants.Fact) error
}

var errNotOurs = errors.New("it names no organization, or another than its header")

// Consume applies records in the transaction that moves their positions.
// The bus parks an unreadable record; other types are ignored.
func (c FactsConsumer) Consume(ctx context.Context, tx pgx.Tx, records []weirbus.Record) error {
	var facts []tenants.Fact
	for _, record := range records {
		notification, found := contract.NotificationOf(record.Header(contract.HeaderType))
		if !found {
			continue
		}
		fact, err := readFact(record, notification.Name)
		if err != nil {
			return weirbus.PermanentRecord(record, fmt.Errorf("cannot read a %s: %w", notification.Type, err))
		}
		facts = append(facts, fact)
	}
	return c.Deliver(ctx, tx, facts)
}

func readFact(record weirbus.Record, name string) (tenants.Fact, error) {
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
	return tenants.Fact{
		ID: attributes.ID, Name: name, Organization: of.Organization, Project: of.Project, Time: attributes.Time, Published: record.Time, Data: record.Value,
	}, nil
}
