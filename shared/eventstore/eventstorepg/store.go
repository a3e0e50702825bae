package eventstorepg

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/pg"
)

// A Projection updates tables by new events, in the transaction that
// appends them: both happen or neither.
type Projection[E any] func(ctx context.Context, tx pgx.Tx, events []eventstore.Recorded[E]) error

// Store keeps events in the table events of the pool's schema (see Migrations).
type Store[E any] struct {
	pool    *pgxpool.Pool
	codec   eventstore.Codec[E]
	project Projection[E]
}

// New returns a store. Every append calls project, which may be nil.
func New[E any](pool *pgxpool.Pool, codec eventstore.Codec[E], project Projection[E]) *Store[E] {
	return &Store[E]{pool: pool, codec: codec, project: project}
}

// Read implements eventstore.Store in its own transaction, as
// the stream's organization.
func (s *Store[E]) Read(ctx context.Context, stream eventstore.Stream) (events []eventstore.Recorded[E], err error) {
	err = s.inTxOf(ctx, stream, func(tx pgx.Tx) error {
		events, err = s.ReadTx(ctx, tx, stream)
		return err
	})
	return events, err
}

// Append implements eventstore.Store in its own transaction, as
// the stream's organization.
func (s *Store[E]) Append(ctx context.Context, stream eventstore.Stream, expected int64, metadata eventstore.Metadata,
	events ...E) error {
	return s.inTxOf(ctx, stream, func(tx pgx.Tx) error {
		return s.AppendTx(ctx, tx, stream, expected, metadata, events...)
	})
}

// AppendTx appends and projects in the caller's transaction, which must act as
// the stream's organization and be READ COMMITTED. Other appends wait until it
// ends, so it should end soon. After an error it must be rolled back.
func (s *Store[E]) AppendTx(ctx context.Context, tx pgx.Tx, stream eventstore.Stream, expected int64,
	metadata eventstore.Metadata, events ...E) error {
	if len(events) == 0 {
		return nil
	}
	cursors, err := s.insert(ctx, tx, stream, expected, metadata, events)
	if err != nil {
		return err
	}
	if s.project == nil {
		return nil
	}
	return s.project(ctx, tx, record(stream, expected, metadata, events, cursors))
}

// inTxOf runs fn in a transaction with the rights of the stream's organization.
func (s *Store[E]) inTxOf(ctx context.Context, stream eventstore.Stream, fn func(tx pgx.Tx) error) error {
	if err := stream.Validate(); err != nil {
		return err
	}
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		if err := actAs(ctx, tx, stream.Organization); err != nil {
			return err
		}
		return fn(tx)
	})
}

func actAs(ctx context.Context, tx pgx.Tx, organization string) error {
	if organization == eventstore.Installation {
		return pg.AsSystem(ctx, tx)
	}
	return pg.AsOrganization(ctx, tx, pg.Organization(organization))
}

// insert adds events if the stream is at version expected. It takes its
// turn in a separate statement, so that the version check sees
// everything appended before.
func (s *Store[E]) insert(ctx context.Context, tx pgx.Tx, stream eventstore.Stream, expected int64,
	metadata eventstore.Metadata, events []E) ([]eventstore.Cursor, error) {
	encoded, err := s.codec.EncodeAll(events)
	if err != nil {
		return nil, err
	}
	encodedMetadata, err := json.Marshal(metadata)
	if err != nil {
		return nil, fmt.Errorf("cannot encode metadata of %q: %w", stream, err)
	}
	if err := LockAppends(ctx, tx); err != nil {
		return nil, fmt.Errorf("cannot append to %q: %w", stream, err)
	}
	names, data, private := columns(encoded)
	rows, err := tx.Query(ctx, insertEvents, stream.Organization, stream.Name, expected, string(encodedMetadata), names, data, private)
	if err != nil {
		return nil, fmt.Errorf("cannot append to %q: %w", stream, err)
	}
	cursors, err := pgx.CollectRows(rows, pgx.RowTo[eventstore.Cursor])
	switch {
	case pg.IsUnique(err), err == nil && len(cursors) != len(events):
		return nil, s.conflict(ctx, tx, stream, expected, err)
	case err != nil:
		return nil, fmt.Errorf("cannot append to %q: %w", stream, err)
	}
	return cursors, nil
}

// conflict returns why nothing was appended. After a database error,
// which is failed, it can't be queried.
func (s *Store[E]) conflict(ctx context.Context, tx pgx.Tx, stream eventstore.Stream, expected int64, failed error) error {
	if failed == nil {
		if gone, err := isErased(ctx, tx, stream); err != nil || gone {
			return errors.Join(err, fmt.Errorf("cannot append to %q: %w", stream, eventstore.ErrErased))
		}
	}
	return eventstore.Conflict(stream, expected)
}

const takeTurn = `SELECT pg_advisory_xact_lock(hashtextextended('weir events ' || current_schema(), 0))`

// LockAppends waits until no other transaction appends, and blocks
// others until tx ends.
func LockAppends(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, takeTurn); err != nil {
		return fmt.Errorf("cannot take the turn to append: %w", err)
	}
	return nil
}

const insertEvents = `
INSERT INTO events (organization, stream, version, name, data, metadata, private)
SELECT $1, $2, $3::bigint + e.ordinality, e.name, e.data::json, $4::json, e.private
FROM unnest($5::text[], $6::text[], $7::bool[]) WITH ORDINALITY AS e (name, data, private, ordinality)
WHERE $3 = (SELECT coalesce(max(version), 0) FROM events WHERE organization = $1 AND stream = $2)
ORDER BY e.ordinality
RETURNING position`

func columns(encoded []eventstore.Encoded) (names, data []string, private []bool) {
	for _, e := range encoded {
		names, data, private = append(names, e.Name), append(data, string(e.Data)), append(private, e.Private)
	}
	return names, data, private
}

// record returns an append's events for projections: the same as a
// later read returns.
func record[E any](stream eventstore.Stream, expected int64, metadata eventstore.Metadata, events []E,
	cursors []eventstore.Cursor) []eventstore.Recorded[E] {
	recorded := make([]eventstore.Recorded[E], len(events))
	for i, event := range events {
		recorded[i] = eventstore.Recorded[E]{
			Stream: stream, Version: expected + int64(i) + 1, Cursor: cursors[i], Metadata: metadata, Event: event,
		}
	}
	return recorded
}
