package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/contract"
)

// A Range is the stretch of one partition of weir.logs.v1 that one transaction applied.
type Range struct {
	Partition    int
	First, Next  int64 // half-open
	Records      int
	Charged      int
	Bytes        int64 // of all records
	ChargedBytes int64
	From, To     time.Time // the earliest and the latest acceptance of its records, both inclusive
	Booked       time.Time
}

// NewRange is the empty range that starts with the record that caused charge.
func NewRange(charge ledger.Charge, booked time.Time) *Range {
	cause := charge.Cause
	return &Range{
		Partition: cause.Partition, First: cause.Offset, Next: cause.Offset, From: cause.At, To: cause.At, Booked: booked,
	}
}

// Add takes one more record into the range. Records come in the order of their offsets.
func (r *Range) Add(charge ledger.Charge, charged bool) {
	r.Next = charge.Cause.Offset + 1
	r.Records++
	r.Bytes += charge.Bytes
	if charge.Cause.At.Before(r.From) {
		r.From = charge.Cause.At
	}
	if charge.Cause.At.After(r.To) {
		r.To = charge.Cause.At
	}
	if charged {
		r.Charged++
		r.ChargedBytes += charge.Bytes
	}
}

const rangeColumns = `partition, first_offset, next_offset, records, charged, bytes, charged_bytes, effective_from, effective_to, booked_at`

func (r *Range) fields() []any {
	return []any{&r.Partition, &r.First, &r.Next, &r.Records, &r.Charged, &r.Bytes, &r.ChargedBytes, &r.From, &r.To, &r.Booked}
}

// SaveRanges notes what the transaction applied, and signals that positions have moved even where no book was touched.
func (s *Store) SaveRanges(ctx context.Context, tx pgx.Tx, ranges []Range) error {
	var batch pgx.Batch
	for _, r := range ranges {
		batch.Queue(`INSERT INTO ranges (`+rangeColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`, r.fields()...)
	}
	batch.Queue(`SELECT pg_notify($1, '')`, Channel)
	return tx.SendBatch(ctx, &batch).Close()
}

// RangesAfter reads, of each partition, at most limit ranges from the given positions on. A partition's ranges are committed
// in their order, so none can appear before one that was read.
func RangesAfter(ctx context.Context, tx pgx.Tx, from contract.Positions, limit int) ([]Range, error) {
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
	var ranges []Range
	var r Range
	_, err = pgx.ForEachRow(rows, r.fields(), func() error {
		ranges = append(ranges, r)
		return nil
	})
	return ranges, err
}
