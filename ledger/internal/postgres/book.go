package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/contract/calendar"
)

// A BookKey is an organization and the start of a period.
type BookKey struct {
	Organization string
	Start        time.Time
}

// orgBook is a book and its organization.
type orgBook struct {
	organization string
	book         ledger.Book
}

const bookColumns = `organization, period_start, period_end, issuer, grant_left, consumed, overage, credit, expired, voided, overshoot,
	reached, refused, raises`

// LoadBooks reads the existing books of keys, by organization.
func LoadBooks(ctx context.Context, tx pgx.Tx, keys map[BookKey]bool) (map[string][]ledger.Book, error) {
	var ids []string
	var starts []time.Time
	for key := range keys {
		ids, starts = append(ids, key.Organization), append(starts, key.Start)
	}
	rows, err := tx.Query(ctx, `SELECT `+bookColumns+` FROM books
		JOIN unnest($1::text[], $2::timestamptz[]) AS wanted (organization, period_start) USING (organization, period_start)`, ids, starts)
	if err != nil {
		return nil, err
	}
	books := make(map[string][]ledger.Book, len(keys))
	return books, forEachBook(rows, func(b orgBook) { books[b.organization] = append(books[b.organization], b.book) })
}

// LoadAllBooks reads every book of organizations, by organization.
func LoadAllBooks(ctx context.Context, tx pgx.Tx, organizations ...string) (map[string][]ledger.Book, error) {
	rows, err := tx.Query(ctx, `SELECT `+bookColumns+` FROM books WHERE organization = ANY($1)`, organizations)
	if err != nil {
		return nil, err
	}
	books := map[string][]ledger.Book{}
	return books, forEachBook(rows, func(b orgBook) { books[b.organization] = append(books[b.organization], b.book) })
}

// LoadOpenBooks reads the organizations' books of open periods.
func LoadOpenBooks(ctx context.Context, tx pgx.Tx, of map[string]ledger.Organization) (map[string][]ledger.Book, error) {
	var ids []string
	var closed []time.Time
	for id, o := range of {
		ids, closed = append(ids, id), append(closed, o.ClosedThrough)
	}
	rows, err := tx.Query(ctx, `SELECT `+bookColumns+` FROM books
		JOIN unnest($1::text[], $2::timestamptz[]) AS open (organization, closed_through) USING (organization) WHERE period_end > closed_through`, ids, closed)
	if err != nil {
		return nil, err
	}
	books := map[string][]ledger.Book{}
	return books, forEachBook(rows, func(b orgBook) { books[b.organization] = append(books[b.organization], b.book) })
}

func forEachBook(rows pgx.Rows, each func(orgBook)) error {
	var b orgBook
	_, err := pgx.ForEachRow(rows, b.fields(), func() error {
		b.book.Period = calendar.Period{Start: b.book.Period.Start.UTC(), End: b.book.Period.End.UTC()}
		each(b)
		return nil
	})
	return err
}

// fields are the addresses of bookColumns.
func (b *orgBook) fields() []any {
	fields := []any{&b.organization, &b.book.Period.Start, &b.book.Period.End}
	for account := range b.book.Balances {
		fields = append(fields, &b.book.Balances[account])
	}
	return append(fields, &b.book.Reached, &b.book.Refused, &b.book.Raises)
}

// queueBooks writes the books. They were read under the organization's
// lock, so no change is lost.
func queueBooks(batch *pgx.Batch, books []orgBook) {
	n := len(books)
	ids, starts, ends, reached := make([]string, n), make([]time.Time, n), make([]time.Time, n), make([]int16, n)
	refused, raises := make([]int64, n), make([]int64, n)
	var balances [len(ledger.Balances{})][]int64
	for i, b := range books {
		ids[i], starts[i], ends[i], reached[i] = b.organization, b.book.Period.Start, b.book.Period.End, int16(b.book.Reached)
		refused[i], raises[i] = b.book.Refused, b.book.Raises
		for account, amount := range b.book.Balances {
			balances[account] = append(balances[account], amount)
		}
	}
	args := []any{ids, starts, ends}
	for _, amounts := range balances {
		args = append(args, amounts)
	}
	batch.Queue(`INSERT INTO books (`+bookColumns+`)
		SELECT * FROM unnest($1::text[], $2::timestamptz[], $3::timestamptz[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
			$9::bigint[], $10::bigint[], $11::bigint[], $12::smallint[], $13::bigint[], $14::bigint[])
		ON CONFLICT (organization, period_start) DO UPDATE SET issuer = excluded.issuer, grant_left = excluded.grant_left,
			consumed = excluded.consumed, overage = excluded.overage, credit = excluded.credit, expired = excluded.expired,
			voided = excluded.voided, overshoot = excluded.overshoot, reached = excluded.reached, refused = excluded.refused, raises = excluded.raises`,
		append(args, reached, refused, raises)...)
}
