package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
)

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

// verifyChargedRanges compares ranges booked since an instant, of which all
// are kept.
func verifyChargedRanges(ctx context.Context, tx pgx.Tx, now time.Time) ([]ledger.Violation, error) {
	return differences(ctx, tx, ledger.RangeIsTransfers, rangesAndCharges, now.Add(24*time.Hour-rangesKept))
}

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

// verifySeals checks the hours since an instant, of which all is kept a day
// later.
func verifySeals(ctx context.Context, tx pgx.Tx, since time.Time) ([]ledger.Violation, error) {
	return differences(ctx, tx, ledger.RootIsChains, sealsAndCuts, since.AddDate(0, 0, 1))
}
