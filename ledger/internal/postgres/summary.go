package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
)

// Summarize has the block range indexes of transfers cover what was booked
// since, of the days from one instant to another: PostgreSQL does so only when
// it vacuums, and reads what they don't cover in answer to every question. It
// gives way to a vacuum, which does the same.
func Summarize(ctx context.Context, tx pgx.Tx, from, to time.Time) error {
	err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL lock_timeout = '100ms'`); err != nil { // below deadlock_timeout, at which a vacuum is cancelled
			return err
		}
		if err := pg.SummarizeDays(ctx, tx, "transfers", from, to); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `SET LOCAL lock_timeout TO DEFAULT`) // for what else tx waits for
		return err
	})
	if err != nil && !pg.IsTransient(err) {
		return fmt.Errorf("cannot have transfers found by their booking: %w", err)
	}
	return nil
}
