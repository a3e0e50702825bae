package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
)

// cutLock orders bookings and cuts, so that bookings behind a cut are recorded.
const cutLock = `hashtextextended('weir ledger cuts ' || current_schema(), 0)`

// queueReplays records the offsets of a range that lie before a cut.
func queueReplays(batch *pgx.Batch, r ledger.Range) {
	batch.Queue(`INSERT INTO replays (partition, "offset", booked_at) SELECT $1, o, $4 FROM generate_series($2::bigint, $3::bigint - 1) AS o
		WHERE $2 < (SELECT next_offset FROM cuts WHERE partition = $1 ORDER BY hour DESC LIMIT 1) ON CONFLICT DO NOTHING`,
		r.Partition, r.First, r.Next, r.Booked)
}

// A stretch is the part of a partition that is not cut yet.
type stretch struct {
	partition int
	cut       *time.Time // the last hour that was cut; nil: none
	first     int64
	booked    int64      // the offset after the last booked
	earliest  *time.Time // lower bound of its times; nil: it is empty
}

// CutHour cuts the next hour with any charge, decision or refusal, once
// everything accepted by its end is booked, which it is through by. It
// waits for the links of the hour before: else that hour's decisions
// would go into the next.
func CutHour(ctx context.Context, tx pgx.Tx, by time.Time) (cut bool, err error) {
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(`+cutLock+`)`); err != nil {
		return false, err
	}
	if _, waits, err := firstCut(ctx, tx); err != nil || waits {
		return false, err
	}
	stretches, hour, ends, err := nextUncut(ctx, tx)
	if err != nil || !ends || hour.Add(time.Hour).After(by) {
		return false, err
	}
	for _, s := range stretches {
		if err := s.endHour(ctx, tx, hour); err != nil {
			return false, fmt.Errorf("cannot cut partition %d: %w", s.partition, err)
		}
	}
	if _, err := tx.Exec(ctx, `WITH unsealed AS (SELECT organization, day FROM refusal_days
			WHERE hour = 'infinity' AND saved_at < $1::timestamptz + interval '1 hour'
			ORDER BY 1, 2 FOR UPDATE)
		UPDATE refusal_days d SET hour = $1::timestamptz FROM unsealed u
			WHERE d.organization = u.organization AND d.day = u.day AND d.hour = 'infinity'`, hour); err != nil {
		return false, fmt.Errorf("cannot take the refusals: %w", err)
	}
	_, err = tx.Exec(ctx, `INSERT INTO seals (hour, refused) SELECT $1, `+hashOfRefusals+` FROM refusal_days WHERE hour = $1`, hour)
	return err == nil, err
}

// HasUnsealed reports whether an hour that ended by an instant is not
// cut or not linked.
func HasUnsealed(ctx context.Context, tx pgx.Tx, by time.Time) (bool, error) {
	_, found, err := FirstUnsealed(ctx, tx, by)
	return found, err
}

// FirstUnsealed returns the first hour that ended by an instant and is
// not cut or not linked.
func FirstUnsealed(ctx context.Context, tx pgx.Tx, by time.Time) (hour time.Time, found bool, err error) {
	if hour, found, err = firstCut(ctx, tx); err != nil || found {
		return hour, found, err
	}
	_, hour, found, err = nextUncut(ctx, tx)
	return hour, found && !hour.Add(time.Hour).After(by), err
}

// firstCut returns the first hour that is cut but not linked.
func firstCut(ctx context.Context, tx pgx.Tx) (hour time.Time, found bool, err error) {
	var first *time.Time
	err = tx.QueryRow(ctx, `SELECT min(hour) FROM seals WHERE root IS NULL`).Scan(&first)
	return timeOf(first), first != nil, err
}

// nextUncut returns the stretches of all partitions and the next hour to cut.
func nextUncut(ctx context.Context, tx pgx.Tx) (stretches []stretch, hour time.Time, found bool, err error) {
	if stretches, err = uncut(ctx, tx); err != nil {
		return nil, hour, false, fmt.Errorf("cannot read what is not cut: %w", err)
	}
	decided, err := firstUnchained(ctx, tx)
	if err != nil {
		return nil, hour, false, fmt.Errorf("cannot read what was decided: %w", err)
	}
	refused, err := firstUnsealedRefusal(ctx, tx)
	if err != nil {
		return nil, hour, false, fmt.Errorf("cannot read what was refused: %w", err)
	}
	var last *time.Time // NULL before the first
	if err = tx.QueryRow(ctx, `SELECT max(hour) FROM seals`).Scan(&last); err != nil {
		return nil, hour, false, err
	}
	hour, found = nextHour(stretches, decided, refused, timeOf(last))
	return stretches, hour, found, nil
}

// uncut returns the stretches of all partitions. It steps from
// partition to partition, as they are few and their ranges many.
func uncut(ctx context.Context, tx pgx.Tx) ([]stretch, error) {
	rows, _ := tx.Query(ctx, `WITH RECURSIVE p AS (SELECT min(partition) AS partition FROM ranges
			UNION ALL SELECT (SELECT min(partition) FROM ranges WHERE partition > p.partition) FROM p WHERE p.partition IS NOT NULL)
		SELECT p.partition, c.hour, s.first, e.next_offset, n.effective_from FROM p
			LEFT JOIN LATERAL (SELECT hour, next_offset FROM cuts WHERE partition = p.partition ORDER BY hour DESC LIMIT 1) c ON true
			CROSS JOIN LATERAL (SELECT coalesce(c.next_offset, (SELECT min(first_offset) FROM ranges WHERE partition = p.partition)) AS first) s
			CROSS JOIN LATERAL (SELECT next_offset FROM ranges WHERE partition = p.partition ORDER BY first_offset DESC LIMIT 1) e
			LEFT JOIN LATERAL (SELECT effective_from FROM ranges WHERE partition = p.partition AND next_offset > s.first
				AND first_offset >= `+rangeOf("p.partition", "s.first")+` ORDER BY first_offset LIMIT 1) n ON true
		WHERE p.partition IS NOT NULL ORDER BY 1`)
	var all []stretch
	var s stretch
	_, err := pgx.ForEachRow(rows, []any{&s.partition, &s.cut, &s.first, &s.booked, &s.earliest}, func() error {
		s.booked = max(s.booked, s.first)
		all = append(all, s)
		return nil
	})
	return all, err
}

// rangeOf returns where the range begins that holds an offset, or the
// range before.
func rangeOf(partition, offset string) string {
	return `coalesce((SELECT max(first_offset) FROM ranges WHERE partition = ` + partition + ` AND first_offset <= ` + offset + `), 0)`
}

// nextHour returns the earliest hour after the last that may have
// content; ok is false where nothing is left to cut.
func nextHour(stretches []stretch, decided, refused *time.Time, last time.Time) (hour time.Time, ok bool) {
	starts := []*time.Time{decided, refused}
	for _, s := range stretches {
		starts = append(starts, s.earliest)
	}
	var earliest *time.Time
	for _, start := range starts {
		if start != nil && (earliest == nil || start.Before(*earliest)) {
			earliest = start
		}
	}
	if earliest == nil {
		return hour, false
	}
	hour = earliest.UTC().Truncate(time.Hour)
	if next := last.UTC().Add(time.Hour); hour.Before(next) {
		hour = next
	}
	return hour, true
}

// endHour cuts an hour of the stretch.
func (s stretch) endHour(ctx context.Context, tx pgx.Tx, hour time.Time) error {
	next, found, err := s.firstAt(ctx, tx, hour.Add(time.Hour))
	if err != nil {
		return err
	}
	if !found {
		next = s.booked
	}
	if s.cut == nil {
		before := hour.Add(-time.Hour)
		if _, err := tx.Exec(ctx, `INSERT INTO cuts (partition, hour, next_offset) VALUES ($1, $2, $3)`, s.partition, before, s.first); err != nil {
			return err
		}
	}
	_, err = tx.Exec(ctx, `INSERT INTO cuts (partition, hour, next_offset) VALUES ($1, $2, $3)`, s.partition, hour, next)
	return err
}

// firstAt returns the stretch's first charge accepted at an instant or
// later. It searches the ranges that may hold it.
func (s stretch) firstAt(ctx context.Context, tx pgx.Tx, at time.Time) (offset int64, found bool, err error) {
	for from := s.first; ; {
		var r ledger.Range
		err := tx.QueryRow(ctx, `SELECT `+rangeColumns+` FROM ranges WHERE partition = $1 AND next_offset > $2 AND effective_to >= $3
			AND first_offset >= `+rangeOf("$1", "$2")+` ORDER BY first_offset LIMIT 1`, s.partition, from, at).Scan(rangeFields(&r)...)
		if errors.Is(err, pgx.ErrNoRows) {
			return 0, false, nil
		}
		if err != nil {
			return 0, false, err
		}
		var first *int64
		err = tx.QueryRow(ctx, `SELECT min("offset") FROM transfers WHERE booked_at BETWEEN $1 AND $2 AND effective_at BETWEEN $3 AND $4
			AND source = $5 AND reason = $6 AND partition = $7 AND "offset" >= $8 AND "offset" < $9`,
			customPlan, r.BookedFrom, r.Booked, at, r.To, ledger.FromLogs, ledger.Charged, s.partition, max(from, r.First), r.Next).Scan(&first)
		if err != nil {
			return 0, false, err
		}
		if first != nil {
			return *first, true, nil
		}
		from = r.Next
	}
}

// firstUnchained returns a lower bound of the times of unlinked
// decisions; nil: there is none.
func firstUnchained(ctx context.Context, tx pgx.Tx) (at *time.Time, err error) {
	err = tx.QueryRow(ctx, `SELECT min(`+decidedAt+`) FROM `+unchained+` AND e.version = coalesce(c.decisions, 0) + 1`).Scan(&at)
	return at, err
}

// firstUnsealedRefusal returns when the first refusal was saved that no
// root has; nil: there is none.
func firstUnsealedRefusal(ctx context.Context, tx pgx.Tx) (at *time.Time, err error) {
	err = tx.QueryRow(ctx, `SELECT min(saved_at) FROM refusal_days WHERE hour = 'infinity'`).Scan(&at)
	return at, err
}

// unchained selects the unlinked decisions.
const unchained = `organizations o LEFT JOIN chains c USING (organization)
	JOIN events e ON e.organization = o.organization AND e.stream = '` + decisionStream + `' AND e.version > coalesce(c.decisions, 0)
	WHERE o.decisions > coalesce(c.decisions, 0) AND ` + notErased

// notErased is the condition for events with content.
const notErased = `e.metadata::text <> '{}'`

// decidedAt is the time of an event; old events without one are at the
// beginning of time.
const decidedAt = `coalesce((e.metadata ->> '` + DecidedAt + `')::timestamptz, '2020-01-01 00:00:00Z')`
