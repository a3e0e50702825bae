package parked

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
)

// Count returns how many records are parked in the schema of tx, and
// when the oldest was.
func Count(ctx context.Context, tx pgx.Tx) (count int64, oldest time.Time, err error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return 0, oldest, err
	}
	var parked *time.Time
	err = tx.QueryRow(ctx, `SELECT count(*), min(parked_at) FROM bus_parked WHERE `+unemptied).Scan(&count, &parked)
	if parked != nil {
		oldest = parked.UTC()
	}
	return count, oldest, err
}
