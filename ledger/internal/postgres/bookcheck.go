package postgres

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
)

// lateness is how long a transaction that has booked may take to commit. A
// longer one only costs a second look at its books.
const lateness = time.Minute

// wholeEvery is how often all transfers of a book are added up all the same.
const wholeEvery = time.Hour

// maxSummed bounds how many books a BookCheck remembers.
const maxSummed = 10_000

// A BookCheck compares books with their transfers. All transfers of a book
// are added up the first time and once an hour; between, only those booked
// since. So a change of a checked book is found at once, and one of transfers
// added up before within an hour, where the book is still written to. The
// zero value is ready; it is for one goroutine.
type BookCheck struct {
	summed map[BookKey]summed // bounded by maxSummed
}

// summed is the sum of a book's transfers that were booked by an instant.
type summed struct {
	whole    time.Time // when everything was added up
	by       time.Time
	balances ledger.Balances
}

// Of compares books with their transfers. tx is a snapshot taken at now or later.
func (c *BookCheck) Of(ctx context.Context, tx pgx.Tx, keys map[BookKey]bool, now time.Time) ([]ledger.Violation, error) {
	books, err := LoadBooks(ctx, tx, keys)
	if err != nil {
		return nil, err
	}
	var violations []ledger.Violation
	for organization, held := range books {
		for _, book := range held {
			sum, err := c.sum(ctx, tx, organization, book, now.Add(-lateness))
			if err != nil {
				return nil, err
			}
			violations = append(violations, compare(organization, book, sum)...)
		}
	}
	return violations, nil
}

// CheckBooks compares the books of an organization that begin since
// an instant with all of their transfers.
func CheckBooks(ctx context.Context, tx pgx.Tx, organization string, since time.Time) (violations []ledger.Violation, err error) {
	books, err := LoadAllBooks(ctx, tx, organization)
	if err != nil {
		return nil, err
	}
	for _, book := range books[organization] {
		if book.Period.Start.Before(since) {
			continue
		}
		_, sum, err := summed{}.add(ctx, tx, organization, book, since)
		if err != nil {
			return nil, err
		}
		violations = append(violations, compare(organization, book, sum)...)
	}
	return violations, nil
}

// fromTouched is how many transfers TouchedBy reads.
const fromTouched = 500

// TouchedBy finds books that the transaction of a range wrote to, at most
// limit of them: those of some transfers that lie together, wherever among
// those of the last day that has any, as they lie by organization.
func TouchedBy(ctx context.Context, tx pgx.Tx, r ledger.Range, limit int) (map[BookKey]bool, error) {
	whole, err := bookedWith(ctx, tx, r)
	if err != nil {
		return nil, err
	}
	if _, err := tx.Exec(ctx, readingTails); err != nil {
		return nil, err
	}
	days, err := daysBetween(ctx, tx, whole.From, whole.To)
	if err != nil {
		return nil, err
	}
	for _, day := range slices.Backward(days) {
		if keys, err := touchedOn(ctx, tx, day, whole, limit); err != nil || len(keys) > 0 {
			return keys, err
		}
	}
	return nil, nil
}

func touchedOn(ctx context.Context, tx pgx.Tx, day time.Time, r ledger.Range, limit int) (map[BookKey]bool, error) {
	end, err := tailOf(ctx, tx, day, r.Booked)
	if err != nil {
		return nil, err
	}
	skipped := rand.Float64() * float64(max(r.Charged-fromTouched, 0)) //nolint:gosec // a sample
	keys, err := end.touchedAfter(ctx, tx, r, int64(skipped), limit)
	if err != nil || len(keys) > 0 {
		return keys, err
	}
	if end, err = safeTailOf(ctx, tx, day, r.Booked); err != nil { // not each charge has left a transfer there
		return nil, err
	}
	return end.touchedAfter(ctx, tx, r, 0, limit)
}

// bookedWith widens a range to all partitions of its transaction, so that
// charges are counted where their transfers are looked for.
func bookedWith(ctx context.Context, tx pgx.Tx, r ledger.Range) (ledger.Range, error) {
	err := tx.QueryRow(ctx, `SELECT least(min(effective_from), $2), greatest(max(effective_to), $3), coalesce(sum(charged), 0)
		FROM checked_ranges JOIN ranges USING (partition) WHERE booked_at = $1`, r.Booked, r.From, r.To).Scan(&r.From, &r.To, &r.Charged)
	return r, err
}

// touchedAfter finds books by transfers of a booking, but for the first of them.
func (t tail) touchedAfter(ctx context.Context, tx pgx.Tx, r ledger.Range, skipped int64, limit int) (map[BookKey]bool, error) {
	rows, err := tx.Query(ctx, `SELECT DISTINCT organization, period_start FROM (SELECT organization, period_start FROM `+t.partition+`
			WHERE ctid >= $1 AND booked_at = $2 LIMIT $3 OFFSET $4) sample LIMIT $5`, planned, t.first, r.Booked, fromTouched, skipped, limit)
	if err != nil {
		return nil, err
	}
	keys := map[BookKey]bool{}
	var key BookKey
	_, err = pgx.ForEachRow(rows, []any{&key.Organization, &key.Start}, func() error {
		keys[key] = true
		return nil
	})
	return keys, err
}

// sum is the sum of a book's transfers, from the sum of before where
// there is one. If the book differs, a transaction may have
// committed late: then everything is added up.
func (c *BookCheck) sum(ctx context.Context, tx pgx.Tx, organization string, book ledger.Book, by time.Time) (ledger.Balances, error) {
	key := BookKey{organization, book.Period.Start}
	before := c.summed[key]
	if by.Sub(before.whole) >= wholeEvery {
		before = summed{whole: by}
	}
	next, all, err := before.add(ctx, tx, organization, book, by)
	if err == nil && !before.by.IsZero() && all != book.Balances {
		next, all, err = summed{whole: by}.add(ctx, tx, organization, book, by)
	}
	if err == nil {
		c.remember(key, next)
	}
	return all, err
}

// remember keeps a sum. Beyond the bound the others are dropped,
// and made again on demand.
func (c *BookCheck) remember(key BookKey, sum summed) {
	if c.summed == nil || len(c.summed) >= maxSummed {
		c.summed = map[BookKey]summed{}
	}
	c.summed[key] = sum
}

// add continues a sum: it returns that of what was booked by an
// instant, and that of everything.
func (s summed) add(ctx context.Context, tx pgx.Tx, organization string, book ledger.Book, by time.Time) (next summed, all ledger.Balances, err error) {
	next, all = s, s.balances
	if by.After(s.by) { // else the clock was set back
		next.by = by
	}
	rows, err := tx.Query(ctx, `SELECT from_account, to_account, sum(amount)::bigint, booked_at <= $5 FROM transfers
		WHERE organization = $1 AND effective_at >= $2 AND effective_at < $3 AND booked_at > $4
		GROUP BY 1, 2, 4
		UNION ALL SELECT from_account, to_account, sum(amount)::bigint, true FROM folded_transfers
		WHERE organization = $1 AND period_start = $2 AND $6 GROUP BY 1, 2`,
		planned, organization, book.Period.Start, book.Period.End, s.by, next.by, s.by.IsZero())
	if err != nil {
		return next, all, err
	}
	var t ledger.Transfer
	var settled bool
	_, err = pgx.ForEachRow(rows, []any{&t.From, &t.To, &t.Amount, &settled}, func() error {
		if settled {
			if err := apply(t, &next.balances); err != nil {
				return err
			}
		}
		return apply(t, &all)
	})
	return next, all, err
}
