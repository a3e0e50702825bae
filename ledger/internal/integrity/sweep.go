package integrity

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/pg"
)

// sweepEvery is how often every organization is compared with what was
// decided about it, so that what was changed is found within a minute.
const sweepEvery = 30 * time.Second

// sweep compares all organizations with their last decisions and
// statements, some in each snapshot. It does so by itself in each replica.
func (c *Checker) sweep(ctx context.Context) error {
	now := c.Clock()
	if now.Sub(c.swept) < sweepEvery && !now.Before(c.swept) {
		return nil
	}
	for after := ""; ; {
		found, last, err := c.sweepPage(ctx, after, now)
		if err != nil {
			return fmt.Errorf("cannot compare organizations with their decisions: %w", err)
		}
		c.note(0, 0, found)
		if after = last; after == "" {
			c.swept = now
			c.metrics.swept(now)
			return nil
		}
	}
}

func (c *Checker) sweepPage(ctx context.Context, after string, now time.Time) (found []ledger.Violation, last string, err error) {
	err = pg.Snapshot(ctx, c.Pool, func(tx pgx.Tx) error {
		if err := pg.AsSystem(ctx, tx); err != nil {
			return err
		}
		found, last, err = postgres.CheckStandings(ctx, tx, after, c.Kept.BooksSince(now), now)
		return err
	})
	return found, last, err
}
