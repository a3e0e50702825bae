package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/contract"
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
	rows, _ := tx.Query(ctx, joinable, ended.Add(-joinedWithin), ended)
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

// LastRanges returns the ranges of each partition's last transaction,
// unless they are older than since.
func LastRanges(ctx context.Context, tx pgx.Tx, since time.Time) ([]ledger.Range, error) {
	rows, err := tx.Query(ctx, `SELECT `+rangeColumns+` FROM ranges WHERE (partition, booked_at) IN (
		SELECT partition, booked_at FROM ranges WHERE (partition, first_offset) IN (
			SELECT partition, (SELECT max(first_offset) FROM ranges r WHERE r.partition = p.partition) FROM bus_positions p
			 WHERE group_name = $1 AND topic = $2)) AND effective_from >= $3 ORDER BY partition, first_offset`,
		contract.GroupLedger, contract.TopicLogs, since)
	if err != nil {
		return nil, err
	}
	return collectRanges(rows)
}

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
	rows, _ := tx.Query(ctx, `SELECT `+rangeColumns+` FROM (SELECT partition AS claimed, next FROM checked_ranges ORDER BY 1 FOR UPDATE SKIP LOCKED) c
		CROSS JOIN LATERAL (SELECT `+rangeColumns+` FROM ranges WHERE partition = claimed AND first_offset >= next ORDER BY first_offset LIMIT $1) r
		ORDER BY partition, first_offset`, limit)
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
	rows, _ := tx.Query(ctx, `SELECT c.partition, c.next, (SELECT booked_at FROM ranges r
			WHERE r.partition = c.partition AND first_offset >= c.next ORDER BY first_offset LIMIT 1) FROM checked_ranges c`)
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

// rangesAndCharges compares each range booked since $1 with its charges:
// their number, when they were booked, and from when to when they were
// accepted, where each of its records is one. A request without bytes has
// no transfer. Each charge booked since has a range.
const rangesAndCharges = `WITH charges AS (SELECT partition, "offset", min(booked_at) AS booked_at, min(effective_at) AS at, bool_or(reason = 4) AS late
			FROM transfers WHERE source = 0 AND reason IN (2, 4) AND booked_at >= $1 GROUP BY 1, 2),
		ranged AS (SELECT r.partition, r.first_offset, r.charged, r.booked_from, r.booked_at, r.records, r.effective_from, r.effective_to, count(*) AS charges,
				min(c.booked_at) AS first, max(c.booked_at) AS last, min(c.at) AS earliest, max(c.at) AS latest, bool_or(c.late) AS late
			FROM ranges r JOIN charges c ON c.partition = r.partition AND "offset" >= r.first_offset AND "offset" < r.next_offset
			WHERE r.booked_from >= $1 GROUP BY 1, 2, 3, 4, 5, 6, 7, 8)
	SELECT 'charges of partition ' || partition || ' from ' || first_offset, charged, charges FROM ranged
		WHERE charged < charges OR (booked_from, booked_at) <> (first, last)
			OR charges = records AND NOT late AND (effective_from, effective_to) <> (earliest, latest)
	UNION ALL SELECT 'charge that had been parked, of partition ' || partition, "offset", 0 FROM charges c JOIN replays r USING (partition, "offset")
		WHERE r.booked_at <> c.booked_at
	UNION ALL SELECT 'charge outside all ranges of partition ' || partition, "offset", 0 FROM charges c
		WHERE EXISTS (SELECT FROM ranges r WHERE r.partition = c.partition) AND NOT EXISTS (
			SELECT FROM ranges r WHERE r.partition = c.partition AND c."offset" >= r.first_offset AND c."offset" < r.next_offset)`

// sealsAndCuts finds hours that are cut or linked without a seal, charges
// linked after a seal since $1 without a cut before them, cuts that go back, and a last checkpoint that is gone. A
// partition's first cut is of the hour before its first charge.
const sealsAndCuts = `SELECT 'the hour ' || (hour AT TIME ZONE 'UTC') || ' without a seal', 0::bigint, 0::bigint
	FROM (SELECT hour FROM links UNION SELECT hour FROM cuts c WHERE hour >= (SELECT min(hour) FROM links)
		AND (EXISTS (SELECT FROM cuts e WHERE e.partition = c.partition AND e.hour < c.hour)
			OR NOT EXISTS (SELECT FROM cuts n WHERE n.partition = c.partition AND n.hour = c.hour + interval '1 hour')
			OR EXISTS (SELECT FROM ranges r WHERE r.partition = c.partition AND r.first_offset < c.next_offset))) made
	WHERE NOT EXISTS (SELECT FROM seals s WHERE s.hour = made.hour)
	UNION ALL SELECT 'the hour ' || (hour AT TIME ZONE 'UTC') || ' without a cut before it', charges, 0 FROM links l
		WHERE charges > 0 AND hour <= (SELECT min(hour) FROM cuts) AND EXISTS (SELECT FROM seals s WHERE s.hour < l.hour AND s.hour >= $1)
	UNION ALL SELECT 'the checkpoint of ' || (max(hour) AT TIME ZONE 'UTC') || ' is gone', 0, 0 FROM seals WHERE checkpoint IS NOT NULL
		HAVING max(hour) IS NOT NULL AND NOT EXISTS (SELECT FROM checkpoints c WHERE c.hour = max(seals.hour))
	UNION ALL SELECT 'partition ' || partition || ' cut at ' || (hour AT TIME ZONE 'UTC'), next_offset, before
		FROM (SELECT *, lag(next_offset) OVER (PARTITION BY partition ORDER BY hour) AS before FROM cuts) c WHERE next_offset < before`
