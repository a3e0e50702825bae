package pg

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// ClockAhead returns how far this machine's clock is ahead of the
// database's, which all replicas share.
func ClockAhead(ctx context.Context, pool *pgxpool.Pool, machine func() time.Time) (time.Duration, error) {
	var database time.Time
	if err := pool.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&database); err != nil {
		return 0, fmt.Errorf("cannot read the clock of the database: %w", err)
	}
	return machine().Sub(database), nil
}
