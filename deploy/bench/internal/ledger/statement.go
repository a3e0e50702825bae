package ledger

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// statementKinds are the ledger's statements by purpose, matched by
// their text. The first match counts.
var statementKinds = []struct{ name, holds string }{
	{"COPY of the transfers, with their key", `COPY "transfers`},
	{"COPY into the inbox", `COPY "inbox`},
	{"usage by hour", "usage_hours"},
	{"usage by day", "usage_days"},
	{"account states: marked, read, published", "unpublished"},
	{"books", "books"},
	{"locks on organizations", "organizations"},
	{"ranges, and their checks", "ranges"},
	{"the rest", ""},
}

// statementTimes is how long statements took, including waits for the
// rows of a COPY, by index of their kind in statementKinds; nil: unknown.
type statementTimes []time.Duration

// statements returns how long PostgreSQL has taken for statements so
// far, if the database has the extension pg_stat_statements.
func (w *world) statements(ctx context.Context) (statementTimes, error) {
	var counted bool
	err := w.pool.QueryRow(ctx, `SELECT to_regclass('pg_stat_statements') IS NOT NULL`).Scan(&counted)
	if err != nil || !counted {
		return nil, err
	}
	rows, err := w.pool.Query(ctx, `SELECT s.query, s.total_exec_time FROM pg_stat_statements s
		JOIN pg_database d ON d.oid = s.dbid WHERE d.datname = current_database()`)
	if err != nil {
		return nil, fmt.Errorf("cannot read pg_stat_statements: %w", err)
	}
	took := make(statementTimes, len(statementKinds))
	var text string
	var millis float64
	_, err = pgx.ForEachRow(rows, []any{&text, &millis}, func() error {
		took[kindOf(text)] += time.Duration(millis * float64(time.Millisecond))
		return nil
	})
	return took, err
}

// kindOf returns the index of a statement's kind.
func kindOf(text string) int {
	for kind := range statementKinds {
		if strings.Contains(text, statementKinds[kind].holds) {
			return kind
		}
	}
	return len(statementKinds) - 1
}

// perRecord returns the increase since before, for each of n records.
func (t statementTimes) perRecord(before statementTimes, n int) statementTimes {
	if before == nil {
		return nil
	}
	each := make(statementTimes, len(t))
	for kind := range t {
		each[kind] = (t[kind] - before[kind]) / time.Duration(n)
	}
	return each
}
