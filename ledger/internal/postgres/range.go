package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
)

const rangeColumns = `partition, first_offset, next_offset, records, charged, bytes, charged_bytes,
	effective_from, effective_to, booked_from, booked_at, checksum`

// rangeFields are the addresses for rangeColumns.
func rangeFields(r *ledger.Range) []any {
	return []any{&r.Partition, &r.First, &r.Next, &r.Records, &r.Charged, &r.Bytes, &r.ChargedBytes, &r.From, &r.To, &r.BookedFrom, &r.Booked, &r.Checksum}
}

// SaveRanges stores the applied ranges, and notifies Channel even if no
// book changed.
func SaveRanges(ctx context.Context, tx pgx.Tx, ranges []ledger.Range) error {
	var batch pgx.Batch
	batch.Queue(`SELECT pg_advisory_xact_lock_shared(` + cutLock + `)`)
	for _, r := range ranges {
		queueReplays(&batch, r)
		queueRange(&batch, r)
	}
	batch.Queue(`SELECT pg_notify($1, '')`, Channel)
	return tx.SendBatch(ctx, &batch).Close()
}

// RangesOf reads at most limit ranges of a partition from an offset, in
// order. They commit in order, so none appears before one already read.
func RangesOf(ctx context.Context, tx pgx.Tx, partition int, from int64, limit int) ([]ledger.Range, error) {
	rows, err := tx.Query(ctx, `SELECT `+rangeColumns+` FROM ranges WHERE partition = $1 AND first_offset >= $2 ORDER BY first_offset LIMIT $3`,
		partition, from, limit)
	if err != nil {
		return nil, err
	}
	return collectRanges(rows)
}

func collectRanges(rows pgx.Rows) (ranges []ledger.Range, err error) {
	var r ledger.Range
	_, err = pgx.ForEachRow(rows, rangeFields(&r), func() error {
		ranges = append(ranges, r)
		return nil
	})
	return ranges, err
}
