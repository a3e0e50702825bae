package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// SaveLost covers offsets that are lost and were never applied: an
// empty range, as old as the one before it, so that ranges stay
// contiguous and no hour changes. Without a range before there is
// nothing to continue.
func SaveLost(ctx context.Context, tx pgx.Tx, partition int, to int64) error {
	_, err := tx.Exec(ctx, `INSERT INTO ranges (`+rangeColumns+`)
		SELECT partition, next_offset, $2, 0, 0, 0, 0, effective_to, effective_to, clock_timestamp(), clock_timestamp(), 0
		  FROM (SELECT * FROM ranges WHERE partition = $1 ORDER BY first_offset DESC LIMIT 1) r WHERE next_offset < $2`, partition, to)
	return err
}
