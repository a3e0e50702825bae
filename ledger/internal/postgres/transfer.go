package postgres

import (
	"context"
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

// copyTransfers copies transfers into the partitions of their days:
// COPY is refused on a table with row level security. The domain and
// the constraints check the rows.
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

// transfersByDay groups the transfers of opened books by their UTC day,
// each day's by organization.
func transfersByDay(opened map[string]*ledger.Books) map[time.Time][]*ledger.Transfer {
	days := map[time.Time][]*ledger.Transfer{}
	var day time.Time
	var of []*ledger.Transfer // of the day, almost always all
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

// customPlan plans a query for its values each time. A generic plan
// locks the transfers of all days.
const customPlan = pgx.QueryExecModeCacheDescribe

// BalancesAt adds up a book's transfers booked at or before an instant.
func BalancesAt(ctx context.Context, tx pgx.Tx, organization pg.Organization, period calendar.Period, at time.Time) (ledger.Balances, error) {
	rows, err := tx.Query(ctx, `SELECT from_account, to_account, sum(amount)::bigint FROM transfers
		WHERE organization = $1 AND effective_at >= $2 AND effective_at < $3 AND period_start = $2 AND booked_at <= $4
		GROUP BY from_account, to_account`, customPlan, organization, period.Start, period.End, at)
	if err != nil {
		return ledger.Balances{}, err
	}
	return sumTransfers(rows)
}

// sumTransfers adds up rows of (from, to, amount).
func sumTransfers(rows pgx.Rows) (ledger.Balances, error) {
	var balances ledger.Balances
	var t ledger.Transfer
	_, err := pgx.ForEachRow(rows, []any{&t.From, &t.To, &t.Amount}, func() error {
		return apply(t, &balances)
	})
	return balances, err
}

// apply adds a transfer read from the database.
func apply(t ledger.Transfer, balances *ledger.Balances) error {
	if max(int(t.From), int(t.To)) >= len(balances) {
		return fmt.Errorf("cannot add a transfer from %s to %s", t.From, t.To)
	}
	balances.Apply(t)
	return nil
}
