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
	"effective_at", "offset", "period_start", "amount", "booked_at", "of_period", "partition", "entries",
	"source", "line", "from_account", "to_account", "reason", "organization", "project", "key", "event", "grant_id",
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
	row.Time(t.Effective())
	row.Int64(t.Cause.Offset)
	row.Time(t.Period.Start)
	row.Int64(t.Amount)
	row.Time(booked)
	if t.Of.IsZero() {
		row.Null()
	} else {
		row.Time(t.Of)
	}
	row.Int32(int32(t.Cause.Partition)) //nolint:gosec // small
	row.Int32(int32(t.Entries))         //nolint:gosec // small
	row.Int16(int16(t.Cause.Source))
	row.Int16(int16(t.Line)) //nolint:gosec // small
	row.Int16(int16(t.From))
	row.Int16(int16(t.To))
	row.Int16(int16(t.Reason))
	row.Text(t.Organization)
	row.Text(t.Cause.Project)
	row.Text(t.Cause.Key)
	row.Text(t.Cause.Event)
	row.Text(t.Grant)
}

// A BookedTransfer is a transfer and when it was booked.
type BookedTransfer struct {
	ledger.Transfer
	EffectiveAt time.Time
	BookedAt    time.Time
}

// ofOrganization selects the transfers of organization $1 by their key.
// Its hash has 64 bits: with 32, decisions of two among 100,000
// organizations at the same instant could share a key.
const ofOrganization = `organization = $1 AND organization_hash = hashtextextended($1, 0)`

// customPlan plans a query for its values each time. A generic plan
// locks the transfers of all days.
const customPlan = pgx.QueryExecModeCacheDescribe

// BalancesAt adds up a book's transfers booked at or before an instant.
func BalancesAt(ctx context.Context, tx pgx.Tx, organization pg.Organization, period calendar.Period, at time.Time) (ledger.Balances, error) {
	rows, err := tx.Query(ctx, `SELECT from_account, to_account, sum(amount)::bigint FROM transfers
		WHERE `+ofOrganization+` AND effective_at >= $2 AND effective_at < $3 AND period_start = $2 AND booked_at <= $4
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
