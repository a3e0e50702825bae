package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/contract"
)

// CheckRanges compares ranges of one partition, in their order, with the transfers that their
// transactions wrote.
func CheckRanges(ctx context.Context, tx pgx.Tx, ranges []ledger.Range) ([]ledger.Violation, error) {
	found, err := chargedIn(ctx, tx, ranges)
	if err != nil {
		return nil, fmt.Errorf("cannot add up the transfers of %d ranges: %w", len(ranges), err)
	}
	var violations []ledger.Violation
	for i, r := range ranges {
		if found[i].bytes == r.ChargedBytes && found[i].events <= r.Charged {
			continue
		}
		violations = append(violations, ledger.Violation{Invariant: ledger.RangeIsTransfers, Detail: fmt.Sprintf(
			"partition %d, offsets [%d, %d): %d bytes of %d records were charged, the transfers are %d bytes of %d",
			r.Partition, r.First, r.Next, r.ChargedBytes, r.Charged, found[i].bytes, found[i].events)})
	}
	return violations, nil
}

// charged is what the transfers of a range come to.
type charged struct {
	bytes  int64
	events int
}

// chargedIn adds up the transfers of ranges, which lie together in the order of their booking.
func chargedIn(ctx context.Context, tx pgx.Tx, ranges []ledger.Range) ([]charged, error) {
	found := make([]charged, len(ranges))
	if len(ranges) == 0 {
		return found, nil
	}
	firsts, booked, whole := make([]int64, len(ranges)), make([]time.Time, len(ranges)), ranges[0]
	for i, r := range ranges {
		firsts[i], booked[i] = r.First, r.Booked
		whole.From, whole.To, whole.Next = earlier(whole.From, r.From), later(whole.To, r.To), r.Next
		whole.Booked = earlier(whole.Booked, r.Booked)
	}
	rows, err := tx.Query(ctx, `SELECT n, bytes, events FROM (
			SELECT width_bucket("offset", $1::bigint[]) AS n, booked_at, sum(amount)::bigint AS bytes, count(DISTINCT "offset") AS events FROM transfers
			 WHERE booked_at BETWEEN $3 AND $4 AND effective_at BETWEEN $5 AND $6 AND source = $7 AND reason = ANY($8)
			   AND partition = $9 AND "offset" >= $10 AND "offset" < $11 GROUP BY 1, 2) t
		WHERE booked_at = ($2::timestamptz[])[n]`,
		firsts, booked, whole.Booked, slices.MaxFunc(booked, time.Time.Compare), whole.From, whole.To, ledger.FromLogs,
		[]ledger.Reason{ledger.Charged, ledger.Late},
		whole.Partition, whole.First, whole.Next)
	if err != nil {
		return nil, err
	}
	var n int
	var sum charged
	_, err = pgx.ForEachRow(rows, []any{&n, &sum.bytes, &sum.events}, func() error {
		found[n-1] = sum
		return nil
	})
	return found, err
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
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

// Verify checks all that the database alone can prove. tx is a snapshot that sees every organization.
func Verify(ctx context.Context, tx pgx.Tx, kept ledger.Retention, now time.Time) ([]ledger.Violation, error) {
	violations, err := verifyHours(ctx, tx, kept.HoursSince(now))
	if err != nil {
		return nil, err
	}
	chains, err := VerifyChains(ctx, tx, kept.ChargesSince(now))
	if err != nil {
		return nil, err
	}
	grants, err := verifyGrants(ctx, tx, kept.ChargesSince(now))
	if err != nil {
		return nil, err
	}
	violations = slices.Concat(violations, chains, grants)
	for _, check := range []func(context.Context, pgx.Tx) ([]ledger.Violation, error){
		verifyBooks, verifyUsage, verifyBudgets, verifyRanges, verifyOrder, verifyStatements,
	} {
		found, err := check(ctx, tx)
		if err != nil {
			return nil, err
		}
		violations = append(violations, found...)
	}
	return violations, nil
}

// verifyBooks compares all books with all of their transfers, in one question for each.
func verifyBooks(ctx context.Context, tx pgx.Tx) ([]ledger.Violation, error) {
	sums, err := allSums(ctx, tx)
	if err != nil {
		return nil, fmt.Errorf("cannot add up all transfers: %w", err)
	}
	rows, err := tx.Query(ctx, `SELECT `+bookColumns+` FROM books`)
	if err != nil {
		return nil, err
	}
	var violations []ledger.Violation
	err = forEachBook(rows, func(b orgBook) {
		sum := sums[BookKey{b.organization, b.book.Period.Start.UTC()}]
		violations = append(violations, compare(b.organization, b.book, sum)...)
	})
	return violations, err
}

// allSums is what the transfers of all books come to.
func allSums(ctx context.Context, tx pgx.Tx) (map[BookKey]ledger.Balances, error) {
	rows, err := tx.Query(ctx, `SELECT organization, b.period_start, from_account, to_account, sum(amount)::bigint
		  FROM books b JOIN transfers t USING (organization) WHERE t.effective_at >= b.period_start AND t.effective_at < b.period_end GROUP BY 1, 2, 3, 4
		UNION ALL SELECT organization, period_start, from_account, to_account, amount FROM folded_transfers`)
	if err != nil {
		return nil, err
	}
	sums := map[BookKey]ledger.Balances{}
	var key BookKey
	var t ledger.Transfer
	_, err = pgx.ForEachRow(rows, []any{&key.Organization, &key.Start, &t.From, &t.To, &t.Amount}, func() error {
		key.Start = key.Start.UTC()
		sum := sums[key]
		err := apply(t, &sum)
		sums[key] = sum
		return err
	})
	return sums, err
}

func verifyRanges(ctx context.Context, tx pgx.Tx) ([]ledger.Violation, error) {
	return differences(ctx, tx, ledger.RangeIsTransfers, `SELECT 'partition ' || partition || ' from ' || first_offset, charged_bytes, bytes
		FROM (SELECT r.partition, r.first_offset, r.charged_bytes, coalesce(sum(t.amount), 0)::bigint AS bytes
			FROM ranges r LEFT JOIN transfers t ON t.source = 0 AND t.reason IN (2, 4) AND t.partition = r.partition
				AND t."offset" >= r.first_offset AND t."offset" < r.next_offset
			GROUP BY 1, 2, 3) compared WHERE charged_bytes <> bytes`)
}

// verifyOrder finds offsets in no range and no parked record, and ranges that overlap. The log has
// no gaps of its own: it is not compacted and its producers use no transactions.
func verifyOrder(ctx context.Context, tx pgx.Tx) ([]ledger.Violation, error) {
	return differences(ctx, tx, ledger.RangesFollow, `SELECT 'partition ' || partition || ' before ' || first_offset, first_offset - previous, parked
		FROM (SELECT r.*, (SELECT count(*) FROM bus_parked b WHERE b.group_name = '`+contract.GroupLedger+`' AND b.topic = '`+contract.TopicLogs+`'
				AND b.partition = r.partition AND b.record_offset >= r.previous AND b.record_offset < r.first_offset) AS parked
			FROM (SELECT partition, first_offset, lag(next_offset) OVER (PARTITION BY partition ORDER BY first_offset) AS previous FROM ranges) r) p
		WHERE first_offset - previous <> parked`)
}

// differences makes violations of rows (what, one, other).
func differences(ctx context.Context, tx pgx.Tx, invariant, query string) ([]ledger.Violation, error) {
	rows, err := tx.Query(ctx, query)
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
