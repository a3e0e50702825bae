package bus

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	weirbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/tenants"
)

// missingFacts returns how many facts the topic lacks, and the place
// before the first of them. The facts of a deletion go with its row.
func (c *comparison) missingFacts(ctx context.Context) (before relay.Cursor, missing int, err error) {
	types := factTypes()
	rows, err := c.tx.Query(ctx, `SELECT name, position FROM events AS e WHERE name = ANY($1) AND position <= $2
		AND (NOT starts_with(stream, $3) OR EXISTS (SELECT FROM deletions d WHERE d.organization = e.organization AND $3 || d.id = e.stream))
		ORDER BY position`, slices.Sorted(maps.Keys(types)), c.published.Position, DeletionStreams)
	if err != nil {
		return before, 0, fmt.Errorf("cannot read which facts there are: %w", err)
	}
	var name string
	var position int64
	_, err = pgx.ForEachRow(rows, []any{&name, &position}, func() error {
		key := fmt.Sprintf("%s/%d", types[name], position)
		if c.topics.Facts[key] || c.withdrawn[contract.TopicTenants+" "+key] {
			return nil
		}
		if missing++; missing == 1 {
			before.Position = position - 1
		}
		return nil
	})
	return before, missing, err
}

// factTypes are the types of facts, by the names of their events.
func factTypes() map[string]string {
	types := map[string]string{}
	for _, event := range tenants.Events() {
		for _, fact := range facts(event, tenants.Fold(event)) {
			types[event.EventName()] = fact.kind
		}
	}
	return types
}

// surplusFacts are tombstones of facts without an event. That an
// organization was created stays, without its name, until it is forgotten.
func (c *comparison) surplusFacts(ctx context.Context) (surplus []relay.Outgoing, err error) {
	positions := map[int64]string{}
	for key := range c.topics.Facts {
		kind, number, _ := strings.Cut(key, "/")
		var position int64
		if _, err := fmt.Sscan(number, &position); err == nil && kind != contract.TypeOrganizationCreated {
			positions[position] = key
		}
	}
	rows, err := c.tx.Query(ctx, `SELECT position FROM unnest($1::bigint[]) AS held (position)
		WHERE NOT EXISTS (SELECT FROM events e WHERE e.position = held.position AND e.name <> 'erased') ORDER BY position`, slices.Collect(maps.Keys(positions)))
	if err != nil {
		return nil, fmt.Errorf("cannot compare facts with the events: %w", err)
	}
	left, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	for _, position := range left {
		key := positions[position]
		if c.withdrawn[contract.TopicTenants+" "+key] {
			continue
		}
		kind, _, _ := strings.Cut(key, "/")
		surplus = append(surplus, relay.Outgoing{Topic: contract.TopicTenants, Message: factTombstone(kind, key, c.now)})
	}
	return surplus, err
}

func factTombstone(kind, key string, at time.Time) *message.Message {
	attributes := contract.Attributes{ID: key + "/unknown", Type: kind, Source: Source, Time: at}
	m := message.NewMessage(attributes.ID, nil)
	m.Metadata = attributes.Headers()
	m.Metadata[weirbus.KeyMetadata] = key
	return m
}
