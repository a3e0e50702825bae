package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Now is the time by the clock of the database: not that at which the
// transaction began, which may have waited for a lock since.
func Now(ctx context.Context, tx pgx.Tx) (now time.Time, err error) {
	err = tx.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&now)
	return now.UTC(), err
}
