package postgres

import (
	"cmp"
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/contract/calendar"
	"github.com/weirlog/weir/shared/pg"
)

// A TransferCursor is a place in an organization's list of transfers.
// The zero value is the start.
type TransferCursor struct {
	Effective time.Time     `json:"t"`
	Source    ledger.Source `json:"s"`
	Partition int32         `json:"p"`
	Offset    int64         `json:"o"`
	Line      int16         `json:"l"`
}

// Cursor returns the transfer's place in the list.
func (t BookedTransfer) Cursor() TransferCursor {
	return TransferCursor{t.EffectiveAt, t.Cause.Source, int32(t.Cause.Partition), t.Cause.Offset, int16(t.Line)} //nolint:gosec // as the columns have them
}

// A TransferQuery selects at most Limit transfers that took effect in
// [From, To), after After.
type TransferQuery struct {
	From, To time.Time
	After    TransferCursor
	Limit    int

	// Filters; zero: any. No index has them, so a query reads at most
	// ScanLimit transfers; zero: 50,000.
	Reason              ledger.Reason
	Project, Key, Grant string
	ScanLimit           int
}

// filters reports whether the query has filters.
func (q TransferQuery) filters() bool {
	return q.Reason != 0 || q.Project != "" || q.Key != "" || q.Grant != ""
}

// A TransferPage is what a query found.
type TransferPage struct {
	Transfers []BookedTransfer
	Next      *TransferCursor // where it stopped at ScanLimit; nil: it did not
}

// Transfers lists transfers, the latest first. It reads period by
// period, to lock the days of one at a time.
func Transfers(ctx context.Context, tx pgx.Tx, organization pg.Organization, q TransferQuery) (TransferPage, error) {
	list := transferList{tx: tx, organization: organization, query: q, unread: max(q.Limit, cmp.Or(q.ScanLimit, 50_000))}
	periods, err := list.periods(ctx)
	for i := 0; err == nil && i < len(periods) && !list.ended(); i++ {
		err = list.look(ctx, periods[i])
	}
	return list.page, err
}

// A transferList is a list as far as it is read.
type transferList struct {
	tx           pgx.Tx
	organization pg.Organization
	query        TransferQuery
	unread       int // how many may still be read
	page         TransferPage
}

func (l *transferList) ended() bool { return l.left() == 0 || l.page.Next != nil }

func (l *transferList) left() int { return l.query.Limit - len(l.page.Transfers) }

// periods returns those with transfers to list, the latest first.
func (l *transferList) periods(ctx context.Context) ([]calendar.Period, error) {
	q := l.query
	rows, err := l.tx.Query(ctx, `SELECT period_start, period_end FROM books WHERE organization = $1 AND period_end > $2 AND period_start < $3
		AND (NOT $4::boolean OR period_start <= $5) ORDER BY period_start DESC`,
		l.organization, q.From, q.To, q.After != TransferCursor{}, q.After.Effective)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[calendar.Period])
}

// look reads the matching transfers of a period.
func (l *transferList) look(ctx context.Context, period calendar.Period) error {
	q, unread := l.query, l.left()
	if q.filters() {
		unread = l.unread
	}
	args := l.args(period, unread, l.left(), int(q.Reason), q.Project, q.Key, q.Grant)
	if err := pg.QueryInSavepoint(ctx, l.tx, selectTransfers, args, l.collect); err != nil || l.left() == 0 || !q.filters() {
		return err
	}
	return pg.QueryInSavepoint(ctx, l.tx, selectLastRead, l.args(period, l.unread), l.stop)
}

// latest selects a period's transfers from the cursor on, as many as
// may be read.
const latest = `(SELECT * FROM transfers
		WHERE ` + ofOrganization + ` AND effective_at >= $2 AND effective_at < $3
			AND (NOT $4::boolean OR (effective_at, source, partition, "offset", line) < ($5, $6, $7, $8, $9))
		` + latestFirst + ` LIMIT $10) AS latest`

const latestFirst = `ORDER BY effective_at DESC, source DESC, partition DESC, "offset" DESC, line DESC`

func (l *transferList) args(period calendar.Period, more ...any) []any {
	from, to, after := calendar.Later(period.Start, l.query.From), calendar.Earlier(period.End, l.query.To), l.query.After
	return append([]any{l.organization, from, to, after != TransferCursor{},
		after.Effective, after.Source, after.Partition, after.Offset, after.Line}, more...)
}

const selectTransfers = `SELECT effective_at, source, partition, "offset", line, period_start, from_account, to_account,
		amount, entries, reason, project, key, event, booked_at, grant_id, of_period FROM ` + latest + `
	WHERE ($12 = 0 OR reason = $12) AND ($13 = '' OR project = $13) AND ($14 = '' OR key = $14) AND ($15 = '' OR grant_id = $15)
	` + latestFirst + ` LIMIT $11`

// collect adds rows to the page.
func (l *transferList) collect(rows pgx.Rows) error {
	var t BookedTransfer
	var of *time.Time
	t.Organization = string(l.organization)
	_, err := pgx.ForEachRow(rows, []any{
		&t.EffectiveAt, &t.Cause.Source, &t.Cause.Partition, &t.Cause.Offset, &t.Line, &t.Period.Start, &t.From, &t.To,
		&t.Amount, &t.Entries, &t.Reason, &t.Cause.Project, &t.Cause.Key, &t.Cause.Event, &t.BookedAt, &t.Grant, &of,
	}, func() error {
		t.EffectiveAt, t.BookedAt, t.Period.Start, t.Of = t.EffectiveAt.UTC(), t.BookedAt.UTC(), t.Period.Start.UTC(), timeOf(of)
		l.page.Transfers = append(l.page.Transfers, t)
		return nil
	})
	return err
}

// selectLastRead selects the last transfer read and the number read.
const selectLastRead = `SELECT count(*) OVER (), effective_at, source, partition, "offset", line FROM ` + latest + `
	ORDER BY effective_at, source, partition, "offset", line LIMIT 1`

// stop ends the list at ScanLimit.
func (l *transferList) stop(rows pgx.Rows) error {
	var read int
	var at TransferCursor
	_, err := pgx.ForEachRow(rows, []any{&read, &at.Effective, &at.Source, &at.Partition, &at.Offset, &at.Line}, func() error { return nil })
	if l.unread -= read; err == nil && l.unread == 0 {
		l.page.Next = &at
	}
	return err
}
