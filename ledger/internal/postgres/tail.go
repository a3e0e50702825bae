package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/weirlog/weir/shared/pg"
)

// A tail is the end of a day's transfers, from a page on. It is read
// from the partition itself, as row level security would take a third
// of the time.
type tail struct {
	partition string
	first     pgtype.TID
}

// wholeDay is the tail from the first page.
func wholeDay(day time.Time) tail {
	return tail{pg.DayPartition("transfers", day), pgtype.TID{Valid: true}}
}

// maxInterleave exceeds the time between bookings of concurrent
// transactions, whose rows share pages.
const maxInterleave = 5 * time.Second

// safeTailOf returns the tail with almost certainly everything booked
// at an instant or later: a failed transaction's room is used again.
func safeTailOf(ctx context.Context, tx pgx.Tx, day, booked time.Time) (tail, error) {
	return tailOf(ctx, tx, day, booked.Add(-maxInterleave))
}

// tailOf returns the tail of a day that begins near an instant's
// bookings. Rows lie in booking order, so bisection finds the first
// page without an earlier row. The page before may have some of that instant.
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

// tailSettings reads a tail on one processor, as the consumers need the
// others, and without indexes, which might not cover it. Sums use
// hashes: a new day has no statistics, and a sort would go to disk.
const tailSettings = `SELECT set_config('max_parallel_workers_per_gather', '0', true), set_config('enable_bitmapscan', 'off', true),
	set_config('enable_sort', 'off', true)`
