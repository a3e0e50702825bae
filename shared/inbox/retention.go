package inbox

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/contract/calendar"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/prune"
)

// Retention is how long an inbox recognizes a part: longer than
// any producer retries.
const Retention = 7 * 24 * time.Hour

// maxAhead limits how far the clock may be ahead of the newest part: a
// wrong clock must not make an inbox drop recent parts. Without newer
// parts nothing needs to go.
const maxAhead = 24 * time.Hour

// Tables returns the tables of an inbox, for a prune.Pruner.
func Tables(clock func() time.Time) []prune.Table {
	return []prune.Table{days{clock}, keys{clock}, held{clock}}
}

// days are the partitions of inbox, each dropped whole.
type days struct{ clock func() time.Time }

func (days) Name() string { return "inbox" }

func (days) Keeps() string { return "7 days, each a partition" }

func (d days) Prune(ctx context.Context, tx pgx.Tx) (removed int64, more bool, err error) {
	newest, err := pg.NewestDay(ctx, tx, "inbox")
	if err != nil || newest.IsZero() {
		return 0, false, err
	}
	before, err := cutoff(ctx, tx, calendar.Earlier(d.clock(), newest.Add(maxAhead)))
	if err != nil {
		return 0, false, err
	}
	dropped, err := pg.DropDaysBefore(ctx, tx, "inbox", before)
	return int64(len(dropped)), false, err
}

func (days) Oldest(ctx context.Context, tx pgx.Tx) (time.Time, error) {
	return one(ctx, tx, `SELECT min(day)::timestamp AT TIME ZONE 'UTC' FROM inbox`)
}

// keys are the idempotency keys. One stays as long as the day of its
// request in inbox: parts it excluded would count as new. So does one
// with a parked record, which may be replayed.
type keys struct{ clock func() time.Time }

func (keys) Name() string { return "inbox_idempotency" }

func (keys) Keeps() string { return "7 days, or as long as a record of the key is parked" }

func (k keys) Prune(ctx context.Context, tx pgx.Tx) (removed int64, more bool, err error) {
	newest, err := one(ctx, tx, `SELECT max(accepted_at) FROM inbox_idempotency`)
	if err != nil || newest.IsZero() {
		return 0, false, err
	}
	before, err := cutoff(ctx, tx, calendar.Earlier(k.clock(), newest.Add(maxAhead)))
	if err != nil {
		return 0, false, err
	}
	tag, err := tx.Exec(ctx, `DELETE FROM inbox_idempotency WHERE accepted_at < $1 AND NOT EXISTS (
		SELECT FROM bus_parked WHERE header_values[array_position(header_names, $2)] = convert_to(idempotency, 'UTF8'))`, before, contract.HeaderIdempotency)
	return tag.RowsAffected(), false, err
}

func (keys) Oldest(ctx context.Context, tx pgx.Tx) (time.Time, error) {
	return one(ctx, tx, `SELECT min(accepted_at) FROM inbox_idempotency`)
}

// cutoff returns the start of the oldest day to keep: Retention before
// the record that the slowest lane has reached, as its records are
// still to be judged.
func cutoff(ctx context.Context, tx pgx.Tx, now time.Time) (time.Time, error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return time.Time{}, err
	}
	slowest, err := one(ctx, tx, `SELECT min(since) FROM bus_deferred WHERE halted IS NULL`)
	if err == nil && !slowest.IsZero() {
		now = calendar.Earlier(now, slowest)
	}
	return now.Add(-Retention).UTC().Truncate(24 * time.Hour), err
}

// one returns the only time in a query's result; zero for null.
func one(ctx context.Context, tx pgx.Tx, query string) (at time.Time, err error) {
	var found *time.Time
	if err := tx.QueryRow(ctx, query).Scan(&found); err != nil || found == nil {
		return time.Time{}, err
	}
	return *found, nil
}

// held are the parts of incomplete requests. One kept today stays,
// however late the consumer is: the others may come at any time. They
// may also be parked, and be replayed unless they are emptied. Parked
// records of other requests keep nothing.
type held struct{ clock func() time.Time }

func (held) Name() string { return "inbox_held" }

func (held) Keeps() string {
	return "until the request is whole, else 7 days, or as long as a part of it is parked"
}

func (h held) Prune(ctx context.Context, tx pgx.Tx) (removed int64, more bool, err error) {
	before, err := cutoff(ctx, tx, h.clock())
	if err != nil {
		return 0, false, err
	}
	tag, err := tx.Exec(ctx, `DELETE FROM inbox_held h WHERE accepted_at < $1 AND held_at < $3
		AND NOT EXISTS (SELECT FROM bus_parked p WHERE p.organization = h.organization
			AND p.header_values[array_position(p.header_names, $2)] = convert_to(h.batch::text, 'UTF8'))`, before, contract.HeaderBatch, h.clock().Add(-24*time.Hour))
	return tag.RowsAffected(), false, err
}

func (held) Oldest(ctx context.Context, tx pgx.Tx) (time.Time, error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return time.Time{}, err
	}
	return one(ctx, tx, `SELECT min(accepted_at) FROM inbox_held`)
}
