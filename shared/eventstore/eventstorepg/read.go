package eventstorepg

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/eventstore"
)

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
