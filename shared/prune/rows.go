package prune

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
)

// batch is how many rows one transaction deletes at most.
const batch = 10_000

// Rows is a table whose rows are deleted by age. Identifiers and
// conditions are SQL of the caller.
type Rows struct {
	Table  string
	Bound  string           // see Table.Keeps
	Age    string           // the column, or expression, of a row's time
	Before func() time.Time // older rows are deleted; see Ago
	Only   string           // a further condition for deletion, with "t" as the table; empty: none

	AppendOnly bool // rows never change, so none is locked: no right to UPDATE is needed
}

// Ago returns the time a span before now.
func Ago(span time.Duration, clock func() time.Time) func() time.Time {
	return func() time.Time { return clock().Add(-span) }
}

// Name implements Table.
func (r Rows) Name() string { return r.Table }

// Keeps implements Table.
func (r Rows) Keeps() string { return r.Bound }

// Prune implements Table. It skips locked rows, unless the table is AppendOnly.
func (r Rows) Prune(ctx context.Context, tx pgx.Tx) (removed int64, more bool, err error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return 0, false, err
	}
	tag, err := tx.Exec(ctx, fmt.Sprintf(`DELETE FROM %[1]s WHERE ctid = ANY (ARRAY(
		SELECT ctid FROM %[1]s AS t WHERE %[2]s < $1%[3]s LIMIT %[4]d%[5]s))`, r.Table, r.Age, r.and(), batch, r.lock()),
		r.Before())
	return tag.RowsAffected(), tag.RowsAffected() == batch, err
}

func (r Rows) lock() string {
	if r.AppendOnly {
		return ""
	}
	return " FOR UPDATE SKIP LOCKED"
}

func (r Rows) and() string {
	if r.Only == "" {
		return ""
	}
	return " AND " + r.Only
}

// Oldest implements Table. It ignores rows that do not age.
func (r Rows) Oldest(ctx context.Context, tx pgx.Tx) (time.Time, error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return time.Time{}, err
	}
	var oldest *time.Time
	err := tx.QueryRow(ctx, fmt.Sprintf(`SELECT min(%[1]s) FROM %[2]s AS t WHERE %[1]s < 'infinity'`, r.Age, r.Table)).Scan(&oldest)
	if err != nil || oldest == nil {
		return time.Time{}, err
	}
	return *oldest, nil
}
