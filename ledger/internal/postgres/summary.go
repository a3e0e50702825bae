package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
)

// Summarize has the block range indexes of transfers cover recent
// bookings on the days from one instant to another. PostgreSQL does so
// only in a vacuum; until then every query reads what they don't cover.
// It gives way to a vacuum.
func Summarize(ctx context.Context, tx pgx.Tx, from, to time.Time) error {
	err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL lock_timeout = '100ms'`); err != nil { // below deadlock_timeout, which cancels a vacuum
			return err
		}
		if err := pg.SummarizeDays(ctx, tx, "transfers", from, to); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `SET LOCAL lock_timeout TO DEFAULT`) // for other waits of tx
		return err
	})
	if err != nil && !pg.IsTransient(err) {
		return fmt.Errorf("cannot summarize the indexes of transfers: %w", err)
	}
	return nil
}
