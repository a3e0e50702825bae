package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// A DailyRoot is the root of the last sealed hour of a UTC day.
type DailyRoot struct {
	Hour          time.Time
	Root          []byte
	Organizations int64
}

// DailyRoots returns those of all days kept.
func DailyRoots(ctx context.Context, tx pgx.Tx) ([]DailyRoot, error) {
	rows, err := tx.Query(ctx, `SELECT DISTINCT ON ((hour AT TIME ZONE 'UTC')::date) hour, root, organizations FROM seals WHERE root IS NOT NULL
		ORDER BY (hour AT TIME ZONE 'UTC')::date, hour DESC`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[DailyRoot])
}
