package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
)

// Ranges of one joinedSpan become one. Those not joined within
// joinedWithin stay as they are: a consumer that is behind has few.
const (
	joinedSpan   = 10 * time.Second
	joinedWithin = 10 * joinedSpan
)

// joinable selects checked ranges, each record of which is a charge, so
// that a joined one is compared as exactly. The last range of a
// partition stays what its transaction applied, and none grows beyond
// where a checkpoint begins, of which there may be another while an hour
// has no root. It locks partitions as ClaimRanges does.
const joinable = `SELECT ` + rangeColumns + ` FROM (SELECT partition AS claimed, next FROM checked_ranges ORDER BY 1 FOR UPDATE SKIP LOCKED) c
	CROSS JOIN LATERAL (SELECT ` + rangeColumns + ` FROM ranges WHERE partition = claimed AND booked_at >= $1 AND booked_at < $2
		AND next_offset <= next AND records = next_offset - first_offset AND charged = records AND charged_bytes > 0 AND checksum IS NOT NULL
		AND first_offset < (SELECT max(first_offset) FROM ranges WHERE partition = claimed)
		AND first_offset >= coalesce((SELECT (positions ->> claimed::text)::bigint FROM checkpoints ORDER BY hour DESC LIMIT 1), 0)) r
	WHERE NOT EXISTS (SELECT FROM seals WHERE root IS NULL) ORDER BY partition, first_offset`

// JoinRanges joins ranges booked before an instant, so that small
// requests, each booked by its own transaction, need no range each.
func JoinRanges(ctx context.Context, tx pgx.Tx, now time.Time) error {
	ended := now.Truncate(joinedSpan)
	rows, err := tx.Query(ctx, joinable, ended.Add(-joinedWithin), ended)
	if err != nil {
		return err
	}
	ranges, err := collectRanges(rows)
	if err != nil {
		return err
	}
	var batch pgx.Batch
	for len(ranges) > 0 {
		joined, of := ranges[0], 1
		for of < len(ranges) && together(joined, ranges[of]) {
			joined.Join(ranges[of])
			of++
		}
		if of > 1 {
			batch.Queue(`DELETE FROM ranges WHERE partition = $1 AND first_offset >= $2 AND first_offset < $3`, joined.Partition, joined.First, joined.Next)
			queueRange(&batch, joined)
		}
		ranges = ranges[of:]
	}
	if batch.Len() == 0 {
		return nil
	}
	return tx.SendBatch(ctx, &batch).Close()
}

// together reports whether the next range continues one in its span.
func together(one, next ledger.Range) bool {
	return next.Partition == one.Partition && next.First == one.Next && next.Booked.Truncate(joinedSpan).Equal(one.Booked.Truncate(joinedSpan))
}

// queueRange adds the insertion of a range.
func queueRange(batch *pgx.Batch, r ledger.Range) {
	batch.Queue(`INSERT INTO ranges (`+rangeColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`, rangeFields(&r)...)
}
