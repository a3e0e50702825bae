package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/contract/calendar"
	"github.com/weirlog/weir/shared/pg"
)

// CheckRanges compares ranges with the transfers of their transactions:
// first with the tail of each day, then, where that differs, with all
// transfers. It misses a transfer added in room that a vacuum freed;
// the check of books and Verify find that. tx holds the days.
func CheckRanges(ctx context.Context, tx pgx.Tx, ranges []ledger.Range) ([]ledger.Violation, error) {
	_, differing, err := compareRanges(ctx, tx, ranges, addTail)
	if err != nil || len(differing) == 0 {
		return nil, err
	}
	from, to := acceptedIn(differing)
	_ = Summarize(ctx, tx, from, to) // best effort: a reader can't write, and reads more
	violations, _, err := compareRanges(ctx, tx, differing, addIndexed)
	return violations, err
}

// compareRanges compares ranges with their transfers and returns those
// that differ.
func compareRanges(ctx context.Context, tx pgx.Tx, ranges []ledger.Range, add adder) (violations []ledger.Violation, differing []ledger.Range, err error) {
	found, err := chargedIn(ctx, tx, ranges, add)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot add up the transfers of %d ranges: %w", len(ranges), err)
	}
	for key, want := range rangesByBooking(ranges) {
		got := found[key]
		if got.bytes == want.ChargedBytes && got.charges <= want.Charged && (got.charges == 0 || got.first >= want.First && got.next <= want.Next) {
			continue
		}
		differing = append(differing, want)
		violations = append(violations, ledger.Violation{Invariant: ledger.RangeIsTransfers, Detail: fmt.Sprintf(
			"partition %d, offsets [%d, %d): %d bytes of %d records were charged, the transfers are %d bytes of %d in [%d, %d)",
			key.partition, want.First, want.Next, want.ChargedBytes, want.Charged, got.bytes, got.charges, got.first, got.next)})
	}
	return violations, differing, nil
}

// A bookingKey is a partition and the instant of its transaction's booking.
type bookingKey struct {
	partition int
	booked    int64 // microseconds
}

func bookingAt(partition int, booked time.Time) bookingKey {
	return bookingKey{partition, booked.UnixMicro()}
}

// rangesByBooking joins ranges of one key, as of a clock that stood still.
func rangesByBooking(ranges []ledger.Range) map[bookingKey]ledger.Range {
	stretches := make(map[bookingKey]ledger.Range, len(ranges))
	for _, r := range ranges {
		key := bookingAt(r.Partition, r.Booked)
		sum, known := stretches[key]
		if !known {
			stretches[key] = r
			continue
		}
		sum.First, sum.Next = min(sum.First, r.First), max(sum.Next, r.Next)
		sum.Charged, sum.ChargedBytes = sum.Charged+r.Charged, sum.ChargedBytes+r.ChargedBytes
		stretches[key] = sum
	}
	return stretches
}

// charged sums the transfers of a booking, and bounds their offsets.
type charged struct {
	bytes       int64
	charges     int
	first, next int64
}

// chargedIn adds up the transfers of ranges. They lie in the order of
// their booking, so they are read once for all partitions.
func chargedIn(ctx context.Context, tx pgx.Tx, ranges []ledger.Range, add adder) (map[bookingKey]charged, error) {
	if len(ranges) == 0 {
		return nil, nil
	}
	all := ranges[0]
	all.From, all.To = acceptedIn(ranges)
	latest := all.Booked
	for _, r := range ranges {
		all.Booked, latest = calendar.Earlier(all.Booked, r.Booked), calendar.Later(latest, r.Booked)
	}
	days, err := daysBetween(ctx, tx, all.From, all.To)
	if err != nil {
		return nil, err
	}
	found := map[bookingKey]charged{}
	for _, day := range days {
		if err := add(ctx, tx, day, all, latest, found); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// acceptedIn returns the first and last acceptance of ranges, both inclusive.
func acceptedIn(ranges []ledger.Range) (from, to time.Time) {
	from, to = ranges[0].From, ranges[0].To
	for _, r := range ranges {
		from, to = calendar.Earlier(from, r.From), calendar.Later(to, r.To)
	}
	return from, to
}

// daysBetween returns the days of transfers from one instant to another.
func daysBetween(ctx context.Context, tx pgx.Tx, from, to time.Time) ([]time.Time, error) {
	days, err := pg.Days(ctx, tx, "transfers")
	first := from.UTC().Truncate(24 * time.Hour)
	return slices.DeleteFunc(days, func(day time.Time) bool { return day.Before(first) || day.After(to) }), err
}

// An adder adds the transfers of a day booked until latest.
type adder func(ctx context.Context, tx pgx.Tx, day time.Time, all ledger.Range, latest time.Time, found map[bookingKey]charged) error

// addTail reads the end of the day.
func addTail(ctx context.Context, tx pgx.Tx, day time.Time, all ledger.Range, latest time.Time, found map[bookingKey]charged) error {
	if _, err := tx.Exec(ctx, tailSettings); err != nil {
		return err
	}
	end, err := safeTailOf(ctx, tx, day, all.Booked)
	if err != nil {
		return err
	}
	return end.addCharged(ctx, tx, all, latest, found)
}

// addIndexed reads the day by the index of bookings.
func addIndexed(ctx context.Context, tx pgx.Tx, day time.Time, all ledger.Range, latest time.Time, found map[bookingKey]charged) error {
	if _, err := tx.Exec(ctx, `SELECT set_config('enable_bitmapscan', 'on', true)`); err != nil {
		return err
	}
	return wholeDay(day).addCharged(ctx, tx, all, latest, found)
}

func (t tail) addCharged(ctx context.Context, tx pgx.Tx, all ledger.Range, latest time.Time, found map[bookingKey]charged) error {
	rows, err := tx.Query(ctx, `SELECT partition, booked_at, sum(amount)::bigint, count(*) FILTER (WHERE entries > 0), min("offset"), max("offset") + 1
		FROM `+t.partition+` WHERE ctid >= $5 AND booked_at BETWEEN $1 AND $2 AND effective_at BETWEEN $3 AND $4 AND `+ofCharges+` GROUP BY 1, 2`,
		all.Booked, latest, all.From, all.To, t.first)
	if err != nil {
		return err
	}
	var partition int
	var booked time.Time
	var sum charged
	_, err = pgx.ForEachRow(rows, []any{&partition, &booked, &sum.bytes, &sum.charges, &sum.first, &sum.next}, func() error {
		key := bookingAt(partition, booked)
		found[key] = found[key].plus(sum)
		return nil
	})
	return err
}

// plus adds another day of the same booking.
func (c charged) plus(other charged) charged {
	if c == (charged{}) {
		return other
	}
	return charged{c.bytes + other.bytes, c.charges + other.charges, min(c.first, other.first), max(c.next, other.next)}
}

func compare(organization string, book ledger.Book, sum ledger.Balances) []ledger.Violation {
	var violations []ledger.Violation
	where := fmt.Sprintf("organization %q, period %s", organization, book.Period.Start.Format("2006-01-02"))
	if book.Balances.Sum() != 0 {
		violations = append(violations, ledger.Violation{Invariant: ledger.SumIsZero, Detail: fmt.Sprintf("%s: %v", where, book.Balances)})
	}
	if book.Balances != sum {
		violations = append(violations, ledger.Violation{
			Invariant: ledger.BalanceIsTransfers, Detail: fmt.Sprintf("%s: balances %v, transfers %v", where, book.Balances, sum),
		})
	}
	return violations
}

// Verify checks everything the database alone can prove. tx is a
// snapshot that sees every organization.
func Verify(ctx context.Context, tx pgx.Tx, kept ledger.Retention, now time.Time) ([]ledger.Violation, error) {
	hours, charges, books := kept.HoursSince(now), kept.ChargesSince(now), kept.BooksSince(now)
	var violations []ledger.Violation
	for _, check := range []struct {
		since time.Time
		of    func(ctx context.Context, tx pgx.Tx, organization string, since time.Time) ([]ledger.Violation, error)
	}{
		{hours, CheckHours}, {charges, func(ctx context.Context, tx pgx.Tx, _ string, since time.Time) ([]ledger.Violation, error) {
			return VerifyChains(ctx, tx, since)
		}},
		{charges, CheckGrants}, {now, CheckRefusals}, {books, CheckStatements},
		{books, func(ctx context.Context, tx pgx.Tx, _ string, since time.Time) ([]ledger.Violation, error) {
			return verifyDecided(ctx, tx, since, now)
		}},
		{now, verifyBooks}, {time.Time{}, CheckCharges}, {now, CheckBudgets},
	} {
		found, err := check.of(ctx, tx, Everyone, check.since)
		if err != nil {
			return nil, err
		}
		violations = append(violations, found...)
	}
	for _, check := range []struct {
		invariant, query string
		args             []any
	}{
		{ledger.RootIsChains, sealsAndCuts, []any{hours.AddDate(0, 0, 1)}}, // of the first day kept not all is
		{ledger.UsageIsCharges, hoursAndCharges, []any{calendar.Later(hours, charges)}},
		{ledger.RangeIsTransfers, rangesAndTransfers, []any{charges}},
		{ledger.TransfersAreWhole, oddTransfers, []any{charges, ledger.FromDecisions}}, // older ones of the same cause may be gone
		{ledger.LinesAreTransfers, linesAndTransfers, []any{charges}},
		{ledger.RangeIsTransfers, rangesAndCharges, []any{now.Add(24*time.Hour - rangesKept)}},
		{ledger.RefusalsAreKept, refusalsAndSeals, []any{refusalsSince(now)}},
		{ledger.RangesFollow, rangesInOrder, nil},
	} {
		found, err := differences(ctx, tx, check.invariant, check.query, check.args...)
		if err != nil {
			return nil, err
		}
		violations = append(violations, found...)
	}
	return violations, nil
}

// Everyone stands for all organizations in a check.
const Everyone = "*"

// scope returns the condition by which a column is an organization's, and
// the arguments with it as the last. Everyone needs neither.
func scope(organization, column string, args ...any) (condition string, with []any) {
	if organization == Everyone {
		return `true`, args
	}
	return fmt.Sprintf(`%s = $%d`, column, len(args)+1), append(args, organization)
}

// byKey adds to a condition on the organization of transfers that on their key.
func byKey(condition string) string {
	_, parameter, isOne := strings.Cut(condition, ` = `)
	if !isOne {
		return condition
	}
	return condition + ` AND organization_hash = hashtextextended(` + parameter + `, 0)`
}

// verifyBooks compares all books with all their transfers.
func verifyBooks(ctx context.Context, tx pgx.Tx, _ string, _ time.Time) ([]ledger.Violation, error) {
	sums, err := allSums(ctx, tx)
	if err != nil {
		return nil, fmt.Errorf("cannot add up all transfers: %w", err)
	}
	owners, err := organizations(ctx, tx, ``)
	if err != nil {
		return nil, err
	}
	rows, _ := tx.Query(ctx, `SELECT `+bookColumns+` FROM books`)
	var violations []ledger.Violation
	err = forEachBook(rows, func(b orgBook) {
		if period := owners[b.organization].PeriodAt(b.book.Period.Start); period != b.book.Period {
			violations = append(violations, ledger.Violation{Invariant: ledger.BooksArePeriods, Detail: fmt.Sprintf(
				"organization %q: a book from %s to %s, and the period is from %s to %s", b.organization, b.book.Period.Start, b.book.Period.End,
				period.Start, period.End)})
		}
		sum := sums[BookKey{b.organization, b.book.Period.Start.UTC()}]
		violations = append(violations, compare(b.organization, b.book, sum)...)
	})
	return violations, err
}

// allSums adds up the transfers of all books.
func allSums(ctx context.Context, tx pgx.Tx) (map[BookKey]ledger.Balances, error) {
	rows, _ := tx.Query(ctx, `SELECT organization, b.period_start, from_account, to_account, sum(amount)::bigint
		  FROM books b JOIN transfers t USING (organization) WHERE t.effective_at >= b.period_start AND t.effective_at < b.period_end GROUP BY 1, 2, 3, 4
		UNION ALL SELECT organization, period_start, from_account, to_account, amount FROM folded_transfers`)
	sums := map[BookKey]ledger.Balances{}
	var key BookKey
	var t ledger.Transfer
	_, err := pgx.ForEachRow(rows, []any{&key.Organization, &key.Start, &t.From, &t.To, &t.Amount}, func() error {
		key.Start = key.Start.UTC()
		sum := sums[key]
		err := apply(t, &sum)
		sums[key] = sum
		return err
	})
	return sums, err
}

// rangesAndTransfers compares ranges since an instant. The last range of a
// silent partition outlives its transfers.
const rangesAndTransfers = `SELECT 'partition ' || partition || ' from ' || first_offset, charged_bytes, bytes
	FROM (SELECT r.partition, r.first_offset, r.charged_bytes, coalesce(sum(t.amount), 0)::bigint AS bytes
		FROM ranges r LEFT JOIN transfers t ON t.source = 0 AND t.reason IN (2, 4) AND t.partition = r.partition
			AND t."offset" >= r.first_offset AND t."offset" < r.next_offset
		WHERE r.effective_from >= $1 GROUP BY 1, 2, 3) compared WHERE charged_bytes <> bytes`

// rangesInOrder finds overlapping ranges, and offsets in neither a range
// nor a parked record. The log has no gaps: it is not compacted and its
// producers use no transactions.
const rangesInOrder = `SELECT 'partition ' || partition || ' before ' || first_offset, first_offset - previous, parked
	FROM (SELECT r.*, (SELECT count(*) FROM bus_parked b WHERE b.group_name = '` + contract.GroupLedger + `' AND b.topic = '` + contract.TopicLogs + `'
			AND b.partition = r.partition AND b.record_offset >= r.previous AND b.record_offset < r.first_offset) AS parked
		FROM (SELECT partition, first_offset, lag(next_offset) OVER (PARTITION BY partition ORDER BY first_offset) AS previous FROM ranges) r) p
	WHERE first_offset - previous <> parked`

// differences returns rows (what, one, other) as violations.
func differences(ctx context.Context, tx pgx.Tx, invariant, query string, args ...any) ([]ledger.Violation, error) {
	rows, err := tx.Query(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("cannot check that %s: %w", invariant, err)
	}
	return violationsOf(rows, invariant)
}

func violationsOf(rows pgx.Rows, invariant string) ([]ledger.Violation, error) {
	var violations []ledger.Violation
	var what string
	var one, other int64
	_, err := pgx.ForEachRow(rows, []any{&what, &one, &other}, func() error {
		violations = append(violations, ledger.Violation{Invariant: invariant, Detail: fmt.Sprintf("%s: %d and %d", what, one, other)})
		return nil
	})
	return violations, err
}

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

// hoursAndCharges compares what was accepted in each hour since $1 with
// what was charged. Where charges came late of a closed period, only what
// follows that period is compared: they do not keep their hour.
const hoursAndCharges = `WITH late AS (SELECT t.organization, max(b.period_end) AS through FROM transfers t
			JOIN books b ON b.organization = t.organization AND b.period_start = t.of_period WHERE reason = 4 GROUP BY 1),
		charged AS (SELECT organization, date_trunc('hour', effective_at, 'UTC') AS hour, project, key, sum(amount)::bigint AS bytes
			FROM transfers WHERE reason = 2 AND effective_at >= $1 GROUP BY 1, 2, 3, 4),
		used AS (SELECT organization, hour, project, key, sum(bytes)::bigint AS bytes FROM usage_hours WHERE outcome = 'accepted' AND hour >= $1 GROUP BY 1, 2, 3, 4)
	SELECT concat_ws(', ', organization, hour AT TIME ZONE 'UTC', project, key), coalesce(u.bytes, 0), coalesce(c.bytes, 0)
		FROM charged c FULL JOIN used u USING (organization, hour, project, key) LEFT JOIN late USING (organization)
		WHERE c.bytes IS DISTINCT FROM u.bytes AND (through IS NULL OR hour >= through)`
