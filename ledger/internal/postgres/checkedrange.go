package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/contract"
)

// FollowRanges adds new partitions to the checked ones, from their
// oldest range on.
func FollowRanges(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `INSERT INTO checked_ranges (partition, next)
		SELECT partition, coalesce((SELECT min(first_offset) FROM ranges r WHERE r.partition = p.partition), next) FROM bus_positions p
		 WHERE group_name = $1 AND topic = $2 AND NOT EXISTS (SELECT FROM checked_ranges c WHERE c.partition = p.partition)
		ON CONFLICT DO NOTHING`, contract.GroupLedger, contract.TopicLogs)
	return err
}

// ClaimRanges returns at most limit unchecked ranges of each partition,
// by partition and offset. It skips partitions that another transaction
// has claimed. The ranges count as checked when tx commits. It claims
// all partitions together, as the transfers of a transaction lie together.
func ClaimRanges(ctx context.Context, tx pgx.Tx, limit int) ([]ledger.Range, error) {
	rows, err := tx.Query(ctx, `SELECT `+rangeColumns+` FROM (SELECT partition AS claimed, next FROM checked_ranges ORDER BY 1 FOR UPDATE SKIP LOCKED) c
		CROSS JOIN LATERAL (SELECT `+rangeColumns+` FROM ranges WHERE partition = claimed AND first_offset >= next ORDER BY first_offset LIMIT $1) r
		ORDER BY partition, first_offset`, limit)
	if err != nil {
		return nil, err
	}
	ranges, err := collectRanges(rows)
	if err != nil || len(ranges) == 0 {
		return nil, err
	}
	partitions, next := make([]int, len(ranges)), make([]int64, len(ranges))
	for i, r := range ranges {
		partitions[i], next[i] = r.Partition, r.Next
	}
	_, err = tx.Exec(ctx, `UPDATE checked_ranges c SET next = r.next FROM (
			SELECT partition, max(next) AS next FROM unnest($1::int[], $2::bigint[]) AS claimed (partition, next) GROUP BY 1) r
		WHERE c.partition = r.partition`, partitions, next)
	return ranges, err
}

// CheckedRanges returns the offsets below which ranges are checked, and
// when the oldest unchecked one was booked; zero: there is none.
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
