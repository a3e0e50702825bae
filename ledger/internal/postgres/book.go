package postgres

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/contract/calendar"
	"github.com/weirlog/weir/shared/pg"
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
	rows, _ := tx.Query(ctx, `SELECT `+bookColumns+` FROM books
		JOIN unnest($1::text[], $2::timestamptz[]) AS wanted (organization, period_start) USING (organization, period_start)`, ids, starts)
	return booksOf(rows)
}

// LoadAllBooks reads every book of organizations, by organization.
func LoadAllBooks(ctx context.Context, tx pgx.Tx, organizations ...string) (map[string][]ledger.Book, error) {
	rows, _ := tx.Query(ctx, `SELECT `+bookColumns+` FROM books WHERE organization = ANY($1)`, organizations)
	return booksOf(rows)
}

// LoadOpenBooks reads the organizations' books of open periods.
func LoadOpenBooks(ctx context.Context, tx pgx.Tx, of map[string]ledger.Organization) (map[string][]ledger.Book, error) {
	var ids []string
	var closed []time.Time
	for id, o := range of {
		ids, closed = append(ids, id), append(closed, o.ClosedThrough)
	}
	rows, _ := tx.Query(ctx, `SELECT `+bookColumns+` FROM books
		JOIN unnest($1::text[], $2::timestamptz[]) AS open (organization, closed_through) USING (organization) WHERE period_end > closed_through`, ids, closed)
	return booksOf(rows)
}

// booksOf returns books by organization.
func booksOf(rows pgx.Rows) (map[string][]ledger.Book, error) {
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

// SaveBooks stores opened books with their transfers, grants and the
// charges' usage. It makes their account states due and notifies
// Channel at commit.
func SaveBooks(ctx context.Context, tx pgx.Tx, booked time.Time, opened map[string]*ledger.Books, charges []ledger.Charge) error {
	var books []orgBook
	var due []string
	for _, id := range sortedKeys(opened) {
		for _, book := range opened[id].All() {
			books = append(books, orgBook{id, book})
		}
		if !opened[id].Organization.Provisional() {
			due = append(due, id)
		}
	}
	if err := copyTransfers(ctx, tx, booked, opened); err != nil {
		return err
	}
	var batch pgx.Batch
	queueBooks(&batch, books)
	usesOf(charges).queue(&batch)
	queueGrants(&batch, opened)
	queueLines(&batch, opened)
	queueBudgets(&batch, opened)
	queueUnpublished(&batch, due)
	batch.Queue(`SELECT pg_notify($1, '')`, Channel)
	return tx.SendBatch(ctx, &batch).Close()
}

func usesOf(charges []ledger.Charge) *useSums {
	uses := newUseSums()
	for i := range charges {
		uses.add(charges[i].Use())
	}
	return uses
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// EnsureDays creates the daily partitions for transfers of these instants.
func EnsureDays(ctx context.Context, tx pgx.Tx, instants ...time.Time) error {
	return pg.EnsureDays(ctx, tx, "transfers", instants...)
}

const budgetColumns = `organization, project, key, bytes, used, period_start, reached, refused, since`

// LoadBudgets reads the budgets of organizations: projects before keys,
// each by id.
func LoadBudgets(ctx context.Context, tx pgx.Tx, organizations []string) (map[string][]ledger.Budget, error) {
	if len(organizations) == 0 {
		return nil, nil
	}
	rows, _ := tx.Query(ctx, `SELECT `+budgetColumns+` FROM budgets WHERE organization = ANY($1)
		ORDER BY organization, key COLLATE "C", project COLLATE "C"`, organizations)
	budgets := map[string][]ledger.Budget{}
	var organization string
	var b ledger.Budget
	_, err := pgx.ForEachRow(rows, []any{
		&organization, &b.Project, &b.Key, &b.Bytes, &b.Used, &b.Period, &b.Reached, &b.Refused, &b.Since,
	}, func() error {
		b.Period = b.Period.UTC()
		budgets[organization] = append(budgets[organization], b)
		return nil
	})
	return budgets, err
}

// queueBudgets writes the budgets of opened books.
func queueBudgets(batch *pgx.Batch, opened map[string]*ledger.Books) {
	for _, id := range sortedKeys(opened) {
		for _, of := range opened[id].Budgets.Removed { // first: it may have a new one
			batch.Queue(`DELETE FROM budgets WHERE organization = $1 AND project = $2 AND key = $3`, id, of.Project, of.Key)
		}
	}
	queueKeptBudgets(batch, opened)
}

func queueKeptBudgets(batch *pgx.Batch, opened map[string]*ledger.Books) {
	var ids, projects, keys []string
	var bytes, used, refused, since []int64
	var starts []time.Time
	var reached []int16
	for _, id := range sortedKeys(opened) {
		for _, b := range opened[id].Budgets.Kept {
			ids, projects, keys = append(ids, id), append(projects, b.Project), append(keys, b.Key)
			bytes, used, refused, since = append(bytes, b.Bytes), append(used, b.Used), append(refused, b.Refused), append(since, b.Since)
			starts, reached = append(starts, b.Period), append(reached, int16(b.Reached))
		}
	}
	if len(ids) == 0 {
		return
	}
	batch.Queue(`INSERT INTO budgets AS b (`+budgetColumns+`)
		SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::timestamptz[], $7::smallint[], $8::bigint[], $9::bigint[])
		ON CONFLICT (organization, project, key) DO UPDATE SET bytes = excluded.bytes, used = excluded.used, period_start = excluded.period_start,
			reached = excluded.reached, refused = excluded.refused, since = excluded.since
		WHERE (b.bytes, b.used, b.period_start, b.reached, b.refused, b.since)
			IS DISTINCT FROM (excluded.bytes, excluded.used, excluded.period_start, excluded.reached, excluded.refused, excluded.since)`,
		ids, projects, keys, bytes, used, starts, reached, refused, since)
}

// Spent returns the accepted bytes of each spender between two days, in
// their order.
func Spent(ctx context.Context, tx pgx.Tx, organization pg.Organization, spenders []ledger.Spender, from, to time.Time) ([]int64, error) {
	projects, keys := make([]string, len(spenders)), make([]string, len(spenders))
	for i, s := range spenders {
		projects[i], keys[i] = s.Project, s.Key
	}
	rows, _ := tx.Query(ctx, `SELECT coalesce(sum(u.bytes), 0)::bigint
		FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS s (project, key, n)
		LEFT JOIN usage_days u ON u.organization = $1 AND u.outcome = $4 AND u.day >= ($5::timestamptz AT TIME ZONE 'UTC')::date
			AND u.day < ($6::timestamptz AT TIME ZONE 'UTC')::date AND CASE WHEN s.key <> '' THEN u.key = s.key ELSE u.project = s.project END
		GROUP BY n ORDER BY n`, organization, projects, keys, ledger.UseAccepted, from, to)
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

// budgetsAndUsage compares used budgets with the usage of their
// projects and keys, where a condition holds. A budget without charges
// since stays in an earlier period.
func budgetsAndUsage(condition string) string {
	return `SELECT concat_ws(', ', b.organization, nullif(b.project, ''), nullif(b.key, '')), b.used, coalesce(sum(u.bytes), 0)::bigint
		FROM budgets b
		JOIN books k ON k.organization = b.organization AND k.period_start = b.period_start
		LEFT JOIN usage_days u ON u.organization = b.organization AND u.outcome = 'accepted'
			AND u.day >= (b.period_start AT TIME ZONE 'UTC')::date AND u.day < (k.period_end AT TIME ZONE 'UTC')::date
			AND CASE WHEN b.key <> '' THEN u.key = b.key ELSE u.project = b.project END
		WHERE ` + condition + ` GROUP BY b.organization, b.project, b.key, b.used HAVING b.used <> coalesce(sum(u.bytes), 0)`
}

// CheckBudgets compares the budgets of an organization or of Everyone.
func CheckBudgets(ctx context.Context, tx pgx.Tx, organization string, _ time.Time) ([]ledger.Violation, error) {
	condition, args := scope(organization, "b.organization")
	return differences(ctx, tx, ledger.BudgetIsUsage, budgetsAndUsage(condition), args...)
}
