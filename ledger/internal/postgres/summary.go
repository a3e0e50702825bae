package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
)

// Summarize has the block range indexes of transfers cover what was booked
// since: PostgreSQL does so only when it vacuums, and reads what they don't
// cover in answer to every question. It gives way: while a day is vacuumed
// it fails, and the vacuum does the same.
func Summarize(ctx context.Context, tx pgx.Tx, from, to time.Time) error {
	if _, err := tx.Exec(ctx, `SET LOCAL lock_timeout = '100ms'`); err != nil { // below deadlock_timeout, at which a vacuum is cancelled
		return err
	}
	return pg.SummarizeDays(ctx, tx, "transfers", from, to)
}

// Unchecked is between which instants what no one has checked took effect;
// found is false where there is nothing.
func Unchecked(ctx context.Context, tx pgx.Tx) (from, to time.Time, found bool, err error) {
	var first, last *time.Time
	err = tx.QueryRow(ctx, `SELECT min(effective_from), max(effective_to) FROM checked_ranges c JOIN ranges r USING (partition)
		WHERE r.first_offset >= c.next`).Scan(&first, &last)
	return timeOf(first), timeOf(last), first != nil, err
}
