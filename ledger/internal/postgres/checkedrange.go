package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/contract"
)

// FollowRanges has the ranges of all partitions checked, from the oldest that is kept.
func FollowRanges(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `INSERT INTO checked_ranges (partition, next)
		SELECT partition, coalesce((SELECT min(first_offset) FROM ranges r WHERE r.partition = p.partition), next) FROM bus_positions p
		 WHERE group_name = $1 AND topic = $2 AND NOT EXISTS (SELECT FROM checked_ranges c WHERE c.partition = p.partition)
		ON CONFLICT DO NOTHING`, contract.GroupLedger, contract.TopicLogs)
	return err
}

// ClaimRanges returns at most limit unchecked ranges of the partition whose are the oldest, without
// those that another transaction has claimed. They are checked when tx commits, and this one's until then.
func ClaimRanges(ctx context.Context, tx pgx.Tx, limit int) ([]ledger.Range, error) {
	var partition int
	var next int64
	err := tx.QueryRow(ctx, `SELECT c.partition, c.next FROM checked_ranges c
		CROSS JOIN LATERAL (SELECT booked_at FROM ranges r WHERE r.partition = c.partition AND first_offset >= c.next ORDER BY first_offset LIMIT 1) oldest
		ORDER BY oldest.booked_at LIMIT 1 FOR UPDATE OF c SKIP LOCKED`).Scan(&partition, &next)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	ranges, err := RangesOf(ctx, tx, partition, next, limit)
	if err != nil || len(ranges) == 0 {
		return nil, err
	}
	_, err = tx.Exec(ctx, `UPDATE checked_ranges SET next = $2 WHERE partition = $1`, partition, ranges[len(ranges)-1].Next)
	return ranges, err
}

// CheckedRanges are through which offsets all replicas have checked the ranges, and since when the oldest
// unchecked one is booked: zero where there is none.
func CheckedRanges(ctx context.Context, tx pgx.Tx) (through contract.Positions, oldest time.Time, err error) {
	rows, err := tx.Query(ctx, `SELECT c.partition, c.next, (SELECT booked_at FROM ranges r
			WHERE r.partition = c.partition AND first_offset >= c.next ORDER BY first_offset LIMIT 1) FROM checked_ranges c`)
	if err != nil {
		return nil, oldest, err
	}
	through = contract.Positions{}
	var partition int
	var next int64
	var booked *time.Time
	_, err = pgx.ForEachRow(rows, []any{&partition, &next, &booked}, func() error {
		through[partition] = next
		if booked != nil && (oldest.IsZero() || booked.Before(oldest)) {
			oldest = *booked
		}
		return nil
	})
	return through, oldest, err
}
