package eventstorepg

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

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
	turn := &pgx.Batch{}
	turn.Queue(takeTurn)
	turn.Queue(pg.Announce)
	if err := tx.SendBatch(ctx, turn).Close(); err != nil {
		return nil, fmt.Errorf("cannot take the turn to append to %q: %w", stream, err)
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

const selectEvents = `SELECT organization, stream, version, position, metadata, name, data, private FROM events `

const (
	ofStream    = `WHERE organization = $1 AND stream = $2 AND name <> '` + ErasedName + `' ORDER BY version`
	afterCursor = `WHERE position > $1 AND name <> '` + ErasedName + `' ORDER BY position LIMIT $2`
	ofOwner     = `WHERE organization = $1 AND position > $2 ORDER BY position LIMIT $3`
)

// ReadTx returns the events of a stream, oldest first, in the caller's
// transaction; none of an erased one.
func (s *Store[E]) ReadTx(ctx context.Context, tx pgx.Tx, stream eventstore.Stream) ([]eventstore.Recorded[E], error) {
	events, err := query(ctx, tx, s.codec.DecodeInto, ofStream, stream.Organization, stream.Name)
	if err != nil {
		return nil, fmt.Errorf("cannot read %q: %w", stream, err)
	}
	return events, nil
}

// ReadOutwardTx is ReadTx for publishers: without private events
// of later versions.
func (s *Store[E]) ReadOutwardTx(ctx context.Context, tx pgx.Tx, stream eventstore.Stream) ([]eventstore.Recorded[E], error) {
	events, err := query(ctx, tx, s.codec.DecodeOutward, ofStream, stream.Organization, stream.Name)
	if err != nil {
		return nil, fmt.Errorf("cannot read %q: %w", stream, err)
	}
	return slices.DeleteFunc(events, func(r eventstore.Recorded[E]) bool { return r.Unknown }), nil
}

// ReadAll returns at most limit events after a cursor in the order of
// commits, without erased ones: none appears later before a cursor.
// Private ones of later versions are Unknown. The transaction must act
// as the system.
func (s *Store[E]) ReadAll(ctx context.Context, tx pgx.Tx, after eventstore.Cursor, limit int) ([]eventstore.Recorded[E], error) {
	events, err := query(ctx, tx, s.codec.DecodeOutward, afterCursor, int64(after), limit)
	if err != nil {
		return nil, fmt.Errorf("cannot read events after %d: %w", after, err)
	}
	return events, nil
}

// ReadOf is ReadAll of one organization, or of the Installation, with
// the positions of erased events; it fails at an unknown one. The
// transaction must act as that organization or as the system.
func (s *Store[E]) ReadOf(ctx context.Context, tx pgx.Tx, organization string, after eventstore.Cursor, limit int) ([]eventstore.Recorded[E], error) {
	events, err := query(ctx, tx, s.codec.DecodeInto, ofOwner, organization, int64(after), limit)
	if err != nil {
		return nil, fmt.Errorf("cannot read events of %q after %d: %w", organization, after, err)
	}
	return events, nil
}

// A decoder completes an event from its stored form.
type decoder[E any] func(recorded *eventstore.Recorded[E], stored eventstore.Encoded) error

func query[E any](ctx context.Context, tx pgx.Tx, decode decoder[E], where string, args ...any) ([]eventstore.Recorded[E], error) {
	rows, err := tx.Query(ctx, selectEvents+where, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, decode.scan)
}

func (decode decoder[E]) scan(row pgx.CollectableRow) (recorded eventstore.Recorded[E], err error) {
	var stored eventstore.Encoded
	var metadata []byte
	err = row.Scan(&recorded.Stream.Organization, &recorded.Stream.Name, &recorded.Version, &recorded.Cursor,
		&metadata, &stored.Name, &stored.Data, &stored.Private)
	if err != nil {
		return recorded, err
	}
	if err := json.Unmarshal(metadata, &recorded.Metadata); err != nil {
		return recorded, fmt.Errorf("cannot decode metadata of %q version %d: %w", recorded.Stream, recorded.Version, err)
	}
	if stored.Name == ErasedName {
		recorded.Erased = true
		return recorded, nil
	}
	return recorded, decode(&recorded, stored)
}

// Begin opens a transaction as organization, or as the system for
// Installation, with the turn to append from the start. What it reads
// stays true until it ends, as a decision over several streams needs.
// It should end soon.
func (s *Store[E]) Begin(ctx context.Context, organization string) (pgx.Tx, error) {
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot begin: %w", err)
	}
	err = actAs(ctx, tx, organization)
	if err == nil {
		err = LockAppends(ctx, tx)
	}
	if err != nil {
		_ = tx.Rollback(ctx)
		return nil, err
	}
	return tx, nil
}

// ErasedName is the stored name of events with only their place left.
const ErasedName = "erased"

// EraseTx empties the events of an organization's streams, in the
// caller's transaction, which has the turn to append. Their positions
// stay, so that nothing is ever appended there. It returns their cursors.
func EraseTx(ctx context.Context, tx pgx.Tx, organization string, streams []string) ([]eventstore.Cursor, error) {
	rows, err := tx.Query(ctx, `UPDATE events SET name = $3, data = '{}', metadata = '{}'
		WHERE organization = $1 AND stream = ANY($2) AND name <> $3 RETURNING position`, organization, streams, ErasedName)
	if err != nil {
		return nil, fmt.Errorf("cannot erase %d streams of %q: %w", len(streams), organization, err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[eventstore.Cursor])
}

// StreamsTx lists by name at most limit streams of an organization that
// are not erased, from behind on, without names that begin with except.
func StreamsTx(ctx context.Context, tx pgx.Tx, organization, behind, except string, limit int) ([]string, error) {
	rows, err := tx.Query(ctx, `SELECT DISTINCT stream FROM events
		WHERE organization = $1 AND stream > $2 AND name <> $3 AND NOT starts_with(stream, $4) ORDER BY stream LIMIT $5`,
		organization, behind, ErasedName, except, limit)
	if err != nil {
		return nil, fmt.Errorf("cannot list streams of %q: %w", organization, err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

func isErased(ctx context.Context, tx pgx.Tx, stream eventstore.Stream) (gone bool, err error) {
	err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM events WHERE organization = $1 AND stream = $2 AND name = $3)`,
		stream.Organization, stream.Name, ErasedName).Scan(&gone)
	return gone, err
}

//go:embed migrations/*.sql
var migrations embed.FS

// Migrations creates the table events.
func Migrations() pg.MigrationSet {
	return pg.MigrationSet{Name: "eventstore", FS: migrations, Rights: pg.Rights{
		"events":              "SELECT, INSERT, UPDATE, DELETE", // erasing updates, retention deletes
		"events_position_seq": "USAGE",
	}}
}
