package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/contract/calendar"
	"github.com/weirlog/weir/shared/pg"
)

var transferColumns = []string{
	"organization", "effective_at", "source", "partition", "offset", "line", "period_start",
	"from_account", "to_account", "amount", "entries", "reason", "project", "key", "event", "booked_at",
	"grant_id", "of_period",
}

// copyTransfers copies each transfer into the partition of its day: COPY is
// refused on a table with row level security, so it bypasses the parent. The
// domain and the constraints check the rows.
func copyTransfers(ctx context.Context, tx pgx.Tx, booked time.Time, opened map[string]*ledger.Books) error {
	days := transfersByDay(opened)
	for _, start := range slices.SortedFunc(maps.Keys(days), time.Time.Compare) {
		day := days[start]
		err := pg.Copy(ctx, tx, pg.DayPartition("transfers", start), transferColumns, len(day), func(i int, row *pg.CopyRow) { copyTransfer(row, day[i], booked) })
		if err != nil {
			return err
		}
	}
	return nil
}

// transfersByDay are the transfers of opened books by the UTC day on which they
// take effect, each day's by their organizations.
func transfersByDay(opened map[string]*ledger.Books) map[time.Time][]*ledger.Transfer {
	days := map[time.Time][]*ledger.Transfer{}
	var day time.Time
	var of []*ledger.Transfer // the day's, almost always all there are
	for _, id := range sortedKeys(opened) {
		transfers := opened[id].Transfers
		for i := range transfers {
			if on := transfers[i].Effective().UTC().Truncate(24 * time.Hour); !on.Equal(day) {
				day, of = on, days[on]
			}
			of = append(of, &transfers[i])
			days[day] = of
		}
	}
	return days
}

// copyTransfer appends the values of transferColumns.
func copyTransfer(row *pg.CopyRow, t *ledger.Transfer, booked time.Time) {
	row.Text(t.Organization)
	row.Time(t.Effective())
	row.Int16(int16(t.Cause.Source))
	row.Int32(int32(t.Cause.Partition)) //nolint:gosec // small
	row.Int64(t.Cause.Offset)
	row.Int16(int16(t.Line)) //nolint:gosec // small
	row.Time(t.Period.Start)
	row.Int16(int16(t.From))
	row.Int16(int16(t.To))
	row.Int64(t.Amount)
	row.Int32(int32(t.Entries)) //nolint:gosec // small
	row.Int16(int16(t.Reason))
	row.Text(t.Cause.Project)
	row.Text(t.Cause.Key)
	row.Text(t.Cause.Event)
	row.Time(booked)
	row.Text(t.Grant)
	if t.Of.IsZero() {
		row.Null()
		return
	}
	row.Time(t.Of)
}

// A BookedTransfer is a transfer and when it was booked.
type BookedTransfer struct {
	ledger.Transfer
	EffectiveAt time.Time
	BookedAt    time.Time
}

// A TransferCursor is a place in the list of an organization's
// transfers. The zero value is the start.
type TransferCursor struct {
	Effective time.Time     `json:"t"`
	Source    ledger.Source `json:"s"`
	Partition int32         `json:"p"`
	Offset    int64         `json:"o"`
	Line      int16         `json:"l"`
}

// Cursor is the transfer's place in the list.
func (t BookedTransfer) Cursor() TransferCursor {
	return TransferCursor{t.EffectiveAt, t.Cause.Source, int32(t.Cause.Partition), t.Cause.Offset, int16(t.Line)} //nolint:gosec // as the columns have them
}

// A TransferQuery selects transfers that took effect in [From,
// To), after After, at most Limit.
type TransferQuery struct {
	From, To time.Time
	After    TransferCursor
	Limit    int

	// Only those of these; zero: of any. No index has them: a query
	// looks at MostRead transfers at most; zero: 50,000.
	Reason              ledger.Reason
	Project, Key, Grant string
	MostRead            int
}

// read is how many transfers are looked at, at most.
func (q TransferQuery) read() int {
	if q.Reason == 0 && q.Project == "" && q.Key == "" && q.Grant == "" {
		return q.Limit
	}
	return max(q.Limit, cmp.Or(q.MostRead, 50_000))
}

// A TransferPage is what a query found.
type TransferPage struct {
	Transfers []BookedTransfer
	Next      *TransferCursor // where it stopped looking, before it had found Limit; nil: it did not
}

// Transfers lists transfers, the latest first.
func Transfers(ctx context.Context, tx pgx.Tx, organization pg.Organization, q TransferQuery) (page TransferPage, err error) {
	if page.Transfers, err = transfers(ctx, tx, organization, q); err != nil || len(page.Transfers) == q.Limit || q.read() == q.Limit {
		return page, err
	}
	page.Next, err = stoppedAt(ctx, tx, organization, q)
	return page, err
}

// latest are the transfers of a query, from its cursor on.
const latest = ` FROM transfers
		WHERE organization = $1 AND effective_at >= $2 AND effective_at < $3
			AND (NOT $4::boolean OR (effective_at, source, partition, "offset", line) < ($5, $6, $7, $8, $9))
		ORDER BY effective_at DESC, source DESC, partition DESC, "offset" DESC, line DESC`

func (q TransferQuery) args(organization pg.Organization, more ...any) []any {
	after := q.After
	return append([]any{organization, q.From, q.To, after != TransferCursor{},
		after.Effective, after.Source, after.Partition, after.Offset, after.Line}, more...)
}

// stoppedAt is the last transfer that a query has looked at; nil: it has looked at all.
func stoppedAt(ctx context.Context, tx pgx.Tx, organization pg.Organization, q TransferQuery) (*TransferCursor, error) {
	rows, err := tx.Query(ctx, `SELECT effective_at, source, partition, "offset", line`+latest+` LIMIT 1 OFFSET $10`, q.args(organization, q.read()-1)...)
	if err != nil {
		return nil, err
	}
	at, err := pgx.CollectExactlyOneRow(rows, pgx.RowToAddrOfStructByPos[TransferCursor])
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return at, err
}

func transfers(ctx context.Context, tx pgx.Tx, organization pg.Organization, q TransferQuery) ([]BookedTransfer, error) {
	rows, err := tx.Query(ctx, `SELECT effective_at, source, partition, "offset", line, period_start, from_account, to_account,
			amount, entries, reason, project, key, event, booked_at, grant_id, of_period
		FROM (SELECT *`+latest+` LIMIT $15) AS latest
		WHERE ($11 = 0 OR reason = $11) AND ($12 = '' OR project = $12) AND ($13 = '' OR key = $13) AND ($14 = '' OR grant_id = $14)
		ORDER BY effective_at DESC, source DESC, partition DESC, "offset" DESC, line DESC LIMIT $10`,
		q.args(organization, q.Limit, int(q.Reason), q.Project, q.Key, q.Grant, q.read())...)
	if err != nil {
		return nil, err
	}
	var found []BookedTransfer
	var t BookedTransfer
	var of *time.Time
	t.Organization = string(organization)
	_, err = pgx.ForEachRow(rows, []any{
		&t.EffectiveAt, &t.Cause.Source, &t.Cause.Partition, &t.Cause.Offset, &t.Line, &t.Period.Start, &t.From, &t.To,
		&t.Amount, &t.Entries, &t.Reason, &t.Cause.Project, &t.Cause.Key, &t.Cause.Event, &t.BookedAt, &t.Grant, &of,
	}, func() error {
		t.EffectiveAt, t.BookedAt, t.Period.Start, t.Of = t.EffectiveAt.UTC(), t.BookedAt.UTC(), t.Period.Start.UTC(), timeOf(of)
		found = append(found, t)
		return nil
	})
	return found, err
}

// BalancesAt adds up the transfers of a book that were booked at
// or before an instant.
func BalancesAt(ctx context.Context, tx pgx.Tx, organization pg.Organization, period calendar.Period, at time.Time) (ledger.Balances, error) {
	rows, err := tx.Query(ctx, `SELECT from_account, to_account, sum(amount)::bigint FROM transfers
		WHERE organization = $1 AND effective_at >= $2 AND effective_at < $3 AND period_start = $2 AND booked_at <= $4
		GROUP BY from_account, to_account`, organization, period.Start, period.End, at)
	if err != nil {
		return ledger.Balances{}, err
	}
	return sumTransfers(rows)
}

// PoolAt is what was left of an organization's grants at an
// instant, from what is left of them now.
func PoolAt(ctx context.Context, tx pgx.Tx, organization pg.Organization, now int64, at time.Time) (left int64, err error) {
	err = tx.QueryRow(ctx, `SELECT $4 - coalesce(sum(CASE WHEN to_account = $3 THEN amount ELSE -amount END), 0)::bigint FROM transfers
		WHERE organization = $1 AND booked_at > $2 AND (from_account = $3 OR to_account = $3)
			AND EXISTS (SELECT FROM grants WHERE organization = $1)`, organization, at, ledger.Credit, now).Scan(&left)
	return left, err
}

// sumTransfers applies rows of (from, to, amount).
func sumTransfers(rows pgx.Rows) (ledger.Balances, error) {
	var balances ledger.Balances
	var t ledger.Transfer
	_, err := pgx.ForEachRow(rows, []any{&t.From, &t.To, &t.Amount}, func() error {
		return apply(t, &balances)
	})
	return balances, err
}

// apply applies a transfer whose accounts are as the database has them.
func apply(t ledger.Transfer, balances *ledger.Balances) error {
	if max(int(t.From), int(t.To)) >= len(balances) {
		return fmt.Errorf("cannot add a transfer from %s to %s", t.From, t.To)
	}
	balances.Apply(t)
	return nil
}
