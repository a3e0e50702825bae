package outbox

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/prune"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrations creates the table of an outbox.
func Migrations() pg.MigrationSet {
	return pg.MigrationSet{Name: "outbox", FS: migrations, Rights: pg.Rights{"facts": "SELECT, INSERT, DELETE"}}
}

// A Fact is an event to publish.
type Fact struct {
	Organization string // the key of its record
	ID           string // the same each time it is published
	Type         string
	At           time.Time
	Body         []byte // JSON
}

// Save inserts facts into the outbox, like Queue, in the transaction
// that makes them true.
func Save(ctx context.Context, tx pgx.Tx, facts []Fact) error {
	if len(facts) == 0 {
		return nil
	}
	var batch pgx.Batch
	Queue(&batch, facts)
	if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
		return fmt.Errorf("cannot save %d events: %w", len(facts), err)
	}
	return nil
}

// Queue inserts facts into the outbox, except those whose id was queued before.
func Queue(batch *pgx.Batch, facts []Fact) {
	if len(facts) == 0 {
		return
	}
	var organizations, ids, types, bodies []string
	var times []time.Time
	for _, f := range facts {
		organizations, ids, types = append(organizations, f.Organization), append(ids, f.ID), append(types, f.Type)
		times, bodies = append(times, f.At), append(bodies, string(f.Body))
	}
	batch.Queue(`INSERT INTO facts (organization, id, type, at, body)
		SELECT organization, id, type, at, body::jsonb
		  FROM unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[], $5::text[]) WITH ORDINALITY AS f (organization, id, type, at, body, n)
		 ORDER BY n
		ON CONFLICT DO NOTHING`, organizations, ids, types, times, bodies)
	batch.Queue(pg.Announce)
}

// An Outbox reads the facts of a schema for one topic.
type Outbox struct {
	Topic  string
	Source string // ce_source
}

// Read implements relay.Config.Read: at most limit facts after a place, in
// the order of their commits. None can appear later before one that was
// read: writers take turns until they commit (see the trigger of the table).
func (o Outbox) Read(ctx context.Context, tx pgx.Tx, after relay.Cursor, limit int) ([]relay.Outgoing, error) {
	rows, err := tx.Query(ctx, `SELECT position, organization, id, type, at, body::text
		FROM facts WHERE position > $1 ORDER BY position LIMIT $2`, after.Position, limit)
	if err != nil {
		return nil, fmt.Errorf("cannot read facts: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (relay.Outgoing, error) {
		var fact Fact
		var at relay.Cursor
		var body string
		err := row.Scan(&at.Position, &fact.Organization, &fact.ID, &fact.Type, &fact.At, &body)
		fact.Body = []byte(body)
		return relay.Outgoing{Topic: o.Topic, Message: o.message(fact), Cursor: at}, err
	})
}

func (o Outbox) message(fact Fact) *message.Message {
	attributes := contract.Attributes{ID: fact.ID, Type: fact.Type, Source: o.Source, Time: fact.At, Organization: fact.Organization}
	m := message.NewMessage(fact.ID, fact.Body)
	for name, value := range attributes.Headers() {
		m.Metadata.Set(name, value)
	}
	m.Metadata.Set(bus.KeyMetadata, fact.Organization)
	return m
}

// Bounds of an outbox that is pruned.
const (
	Retained   = 20_000 // published facts to keep: a relay goes back by what its topic has lost
	pruneBatch = 10_000 // facts that one transaction deletes
)

// Table returns the outbox of a relay, for a prune.Pruner: published
// facts are deleted, except the newest. It is for modules that never
// write a fact twice: a deleted one would be published again.
func Table(relay string) prune.Table {
	return facts{relay: relay, retained: Retained, batch: pruneBatch}
}

type facts struct {
	relay           string // its cursor is at the last published fact
	retained, batch int64
}

func (facts) Name() string { return "facts" }

func (facts) Keeps() string { return "what is still to be published, and the newest 20,000 facts" }

func (f facts) Prune(ctx context.Context, tx pgx.Tx) (removed int64, more bool, err error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return 0, false, err
	}
	var published int64
	if err := tx.QueryRow(ctx, `SELECT coalesce(max(position), 0) FROM bus_relays WHERE name = $1`, f.relay).Scan(&published); err != nil {
		return 0, false, err
	}
	tag, err := tx.Exec(ctx, `DELETE FROM facts WHERE position IN (SELECT position FROM facts WHERE position <= $1 ORDER BY position LIMIT $2)`,
		published-f.retained, f.batch)
	return tag.RowsAffected(), tag.RowsAffected() == f.batch, err
}

func (facts) Oldest(ctx context.Context, tx pgx.Tx) (at time.Time, err error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return time.Time{}, err
	}
	err = tx.QueryRow(ctx, `SELECT at FROM facts ORDER BY position LIMIT 1`).Scan(&at)
	if errors.Is(err, pgx.ErrNoRows) {
		return time.Time{}, nil
	}
	return at, err
}
