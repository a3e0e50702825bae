package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/contract"
)

const rangeColumns = `partition, first_offset, next_offset, records, charged, bytes, charged_bytes, effective_from, effective_to, booked_at`

// rangeFields are the addresses of rangeColumns.
func rangeFields(r *ledger.Range) []any {
	return []any{&r.Partition, &r.First, &r.Next, &r.Records, &r.Charged, &r.Bytes, &r.ChargedBytes, &r.From, &r.To, &r.Booked}
}

// SaveRanges notes what the transaction applied, and signals that positions have moved even where
// no book was touched.
func SaveRanges(ctx context.Context, tx pgx.Tx, ranges []ledger.Range) error {
	var batch pgx.Batch
	for _, r := range ranges {
		batch.Queue(`INSERT INTO ranges (`+rangeColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`, rangeFields(&r)...)
	}
	batch.Queue(`SELECT pg_notify($1, '')`, Channel)
	return tx.SendBatch(ctx, &batch).Close()
}

// RangesAfter reads at most limit ranges of each partition from the given positions. Ranges of a
// partition commit in order, so none appears before one that was read.
func RangesAfter(ctx context.Context, tx pgx.Tx, from contract.Positions, limit int) ([]ledger.Range, error) {
	var partitions []int
	var offsets []int64
	for partition, offset := range from {
		partitions, offsets = append(partitions, partition), append(offsets, offset)
	}
	rows, err := tx.Query(ctx, `SELECT `+rangeColumns+` FROM bus_positions p
		LEFT JOIN unnest($1::int[], $2::bigint[]) AS f (partition, start) USING (partition)
		CROSS JOIN LATERAL (SELECT first_offset, next_offset, records, charged, bytes, charged_bytes, effective_from, effective_to, booked_at
			FROM ranges WHERE ranges.partition = p.partition AND first_offset >= coalesce(f.start, 0)
			ORDER BY first_offset LIMIT $3) r
		WHERE group_name = $4 AND topic = $5`, partitions, offsets, limit, contract.GroupLedger, contract.TopicLogs)
	if err != nil {
		return nil, err
	}
	var ranges []ledger.Range
	var r ledger.Range
	_, err = pgx.ForEachRow(rows, rangeFields(&r), func() error {
		ranges = append(ranges, r)
		return nil
	})
	return ranges, err
}
