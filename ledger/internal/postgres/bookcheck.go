package postgres

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
)

// maxCommitDelay is the longest usual time from booking to commit. A
// longer one only costs a second sum.
const maxCommitDelay = time.Minute

// fullSumEvery is how often all transfers of a book are added up.
const fullSumEvery = time.Hour

// maxSummed bounds how many books a BookCheck remembers.
const maxSummed = 10_000

// A BookCheck compares books with their transfers. It adds up all
// transfers of a book the first time and hourly, and otherwise only
// those booked since. So a changed book is found at once, and a changed
// transfer within an hour while the book is in use. The zero value is
// ready; it is for one goroutine.
type BookCheck struct {
	summed map[BookKey]summed // bounded by maxSummed
}

// summed is the sum of a book's transfers booked by an instant.
type summed struct {
	whole    time.Time // of the last full sum
	by       time.Time
	balances ledger.Balances
}

// Compare compares books with their transfers. tx is a snapshot taken at now
// or later.
func (c *BookCheck) Compare(ctx context.Context, tx pgx.Tx, keys map[BookKey]bool, now time.Time) ([]ledger.Violation, error) {
	books, err := LoadBooks(ctx, tx, keys)
	if err != nil {
		return nil, err
	}
	var violations []ledger.Violation
	for organization, held := range books {
		for _, book := range held {
			sum, err := c.sum(ctx, tx, organization, book, now.Add(-maxCommitDelay))
			if err != nil {
				return nil, err
			}
			violations = append(violations, compare(organization, book, sum)...)
		}
	}
	return violations, nil
}

// CheckBooks compares the books of an organization that begin at an
// instant or later with all their transfers.
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

// touchedSample is how many transfers TouchedBy reads.
const touchedSample = 500

// TouchedBy returns at most limit books that the transaction of a range
// wrote to. It samples transfers at a random place in the last day that has any.
func TouchedBy(ctx context.Context, tx pgx.Tx, r ledger.Range, limit int) (map[BookKey]bool, error) {
	whole, err := wholeTransaction(ctx, tx, r)
	if err != nil {
		return nil, err
	}
	if _, err := tx.Exec(ctx, tailSettings); err != nil {
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
	skipped := rand.Float64() * float64(max(r.Charged-touchedSample, 0)) //nolint:gosec // a sample
	keys, err := end.touchedAfter(ctx, tx, r, int64(skipped), limit)
	if err != nil || len(keys) > 0 {
		return keys, err
	}
	if end, err = safeTailOf(ctx, tx, day, r.Booked); err != nil { // fewer transfers than charges
		return nil, err
	}
	return end.touchedAfter(ctx, tx, r, 0, limit)
}

// wholeTransaction widens a range to all partitions of its transaction,
// so that its charges match its transfers.
func wholeTransaction(ctx context.Context, tx pgx.Tx, r ledger.Range) (ledger.Range, error) {
	err := tx.QueryRow(ctx, `SELECT least(min(effective_from), $2), greatest(max(effective_to), $3), coalesce(sum(charged), 0)
		FROM checked_ranges JOIN ranges USING (partition) WHERE booked_at = $1`, r.Booked, r.From, r.To).Scan(&r.From, &r.To, &r.Charged)
	return r, err
}

// touchedAfter returns the books of a booking's transfers after those skipped.
func (t tail) touchedAfter(ctx context.Context, tx pgx.Tx, r ledger.Range, skipped int64, limit int) (map[BookKey]bool, error) {
	rows, _ := tx.Query(ctx, `SELECT DISTINCT organization, period_start FROM (SELECT organization, period_start FROM `+t.partition+`
			WHERE ctid >= $1 AND booked_at = $2 LIMIT $3 OFFSET $4) sample LIMIT $5`, customPlan, t.first, r.Booked, touchedSample, skipped, limit)
	keys := map[BookKey]bool{}
	var key BookKey
	_, err := pgx.ForEachRow(rows, []any{&key.Organization, &key.Start}, func() error {
		keys[key] = true
		return nil
	})
	return keys, err
}

// sum returns the sum of a book's transfers, from the last sum on. If
// the book differs, a transaction may have committed late: then it adds up all.
func (c *BookCheck) sum(ctx context.Context, tx pgx.Tx, organization string, book ledger.Book, by time.Time) (ledger.Balances, error) {
	key := BookKey{organization, book.Period.Start}
	before := c.summed[key]
	if by.Sub(before.whole) >= fullSumEvery {
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

// remember keeps a sum. At the bound it drops all others.
func (c *BookCheck) remember(key BookKey, sum summed) {
	if c.summed == nil || len(c.summed) >= maxSummed {
		c.summed = map[BookKey]summed{}
	}
	c.summed[key] = sum
}

// add continues a sum. next has the transfers booked by an instant, all
// has every one.
func (s summed) add(ctx context.Context, tx pgx.Tx, organization string, book ledger.Book, by time.Time) (next summed, all ledger.Balances, err error) {
	next, all = s, s.balances
	if by.After(s.by) { // else the clock was set back
		next.by = by
	}
	rows, err := tx.Query(ctx, `SELECT from_account, to_account, sum(amount)::bigint, booked_at <= $5 FROM transfers
		WHERE `+ofOrganization+` AND effective_at >= $2 AND effective_at < $3 AND booked_at > $4
		GROUP BY 1, 2, 4
		UNION ALL SELECT from_account, to_account, sum(amount)::bigint, true FROM folded_transfers
		WHERE organization = $1 AND period_start = $2 AND $6 GROUP BY 1, 2`,
		customPlan, organization, book.Period.Start, book.Period.End, s.by, next.by, s.by.IsZero())
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

// grantsAndTransfers compares grants since an instant with their
// transfers, and organizations' pools with what is left of their
// grants, where a condition holds, another for transfers. A grant voided before its start was
// never booked. One may cover earlier charges ($8) of the period that
// was open at its creation.
func grantsAndTransfers(condition, transfers string) string {
	return `WITH booked AS (SELECT organization, grant_id AS id,
				sum(amount) FILTER (WHERE to_account = $3) AS issued, sum(amount) FILTER (WHERE from_account = $3 AND to_account = $4) AS consumed,
				sum(amount) FILTER (WHERE to_account = $5) AS expired, sum(amount) FILTER (WHERE to_account = $6) AS voided
			FROM transfers WHERE ` + transfers + ` AND grant_id <> '' AND effective_at >= $8 GROUP BY 1, 2),
		left_of_all AS (SELECT organization, sum(remaining) AS remaining FROM grants WHERE ` + condition + ` AND status = $2 GROUP BY 1)
		SELECT concat_ws(', ', g.organization, 'grant ' || g.id, v.what), v.kept::bigint, coalesce(v.booked, 0)::bigint
		FROM grants g LEFT JOIN booked b USING (organization, id) CROSS JOIN LATERAL (VALUES ('issued', g.amount, b.issued),
			('consumed', g.consumed, b.consumed), ('expired', g.expired, b.expired), ('voided', g.voided, b.voided)) AS v (what, kept, booked)
		WHERE ` + condition + ` AND g.created_at >= $1 AND g.status <> $7 AND NOT (b.id IS NULL AND g.voided = g.amount) AND v.kept <> coalesce(v.booked, 0)
		UNION ALL SELECT concat_ws(', ', organization, 'all grants'), coalesce(l.remaining, 0)::bigint, o.pool
		FROM organizations o LEFT JOIN left_of_all l USING (organization) WHERE ` + condition + ` AND coalesce(l.remaining, 0) <> o.pool`
}

// maxOpenPeriod exceeds how long a period is open.
const maxOpenPeriod = 62 * 24 * time.Hour

// CheckGrants compares the grants of an organization or of Everyone that
// were created since an instant, and the pools.
func CheckGrants(ctx context.Context, tx pgx.Tx, organization string, since time.Time) ([]ledger.Violation, error) {
	args := []any{since, ledger.GrantActive, ledger.Credit, ledger.Consumed, ledger.Expired, ledger.Voided, ledger.GrantScheduled, since.Add(-maxOpenPeriod)}
	condition, args := scope(organization, "organization", args...)
	return differences(ctx, tx, ledger.GrantIsTransfers, grantsAndTransfers(condition, byKey(condition)), append([]any{customPlan}, args...)...)
}
