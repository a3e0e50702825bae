package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/weirlog/weir/shared/pg"
)

// A tail is the end of a day's transfers, from a page on. It is read from the
// day's partition itself: row level security, which lets the system see every
// row, would take a third of the time.
type tail struct {
	partition string
	first     pgtype.TID
}

// wholeDay is all that a day has.
func wholeDay(day time.Time) tail {
	return tail{pg.DayPartition("transfers", day), pgtype.TID{Valid: true}}
}

// aside is more than lies between the bookings of two transactions that write
// side by side: their rows are on the same pages.
const aside = 5 * time.Second

// safeTailOf is the tail that has almost certainly all that was booked at an
// instant or later: room that a failed transaction left is used again.
func safeTailOf(ctx context.Context, tx pgx.Tx, day, booked time.Time) (tail, error) {
	return tailOf(ctx, tx, day, booked.Add(-aside))
}

// tailOf is the tail of a day that begins about where what was booked at an
// instant does: rows lie in the order of their booking, so halving finds the
// first page that has nothing of before. The last rows of the page before it
// may be of then as well.
func tailOf(ctx context.Context, tx pgx.Tx, day, booked time.Time) (t tail, err error) {
	t = wholeDay(day)
	err = tx.QueryRow(ctx, `WITH RECURSIVE halves (low, high) AS (
			SELECT 0::bigint, pg_relation_size($1::text::regclass) / current_setting('block_size')::bigint
			UNION ALL SELECT CASE WHEN earlier THEN middle + 1 ELSE low END, CASE WHEN earlier THEN high ELSE middle END
			FROM (SELECT low, high, middle, coalesce($2 > (SELECT min(booked_at) FROM `+t.partition+`
					WHERE ctid >= format('(%s,0)', middle)::tid AND ctid < format('(%s,0)', middle + 1)::tid), false) AS earlier
				FROM (SELECT low, high, (low + high) / 2 AS middle FROM halves WHERE low < high) half) looked)
		SELECT greatest(low - 1, 0) FROM halves WHERE low = high`, t.partition, booked).Scan(&t.first.BlockNumber)
	if err != nil {
		return t, fmt.Errorf("cannot find the end of %s: %w", t.partition, err)
	}
	return t, nil
}

// readingTails has tails read as such: by one processor, as the consumers need
// the others, and by no index, which might not cover them. Sums are made by a
// hash: nothing is known of a day on which nobody has booked before, and a sort
// of what is taken for few goes to disk.
const readingTails = `SELECT set_config('max_parallel_workers_per_gather', '0', true), set_config('enable_bitmapscan', 'off', true),
	set_config('enable_sort', 'off', true)`
