package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Now returns the database's clock. A transaction's own time may be
// old, as it may have waited for a lock.
func Now(ctx context.Context, tx pgx.Tx) (now time.Time, err error) {
	err = tx.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&now)
	return now.UTC(), err
}
