package soak

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
)

// idle are the tables into which nothing comes all year, and why: that they
// are flat says nothing.
var idle = map[string]string{
	"ingest.bus_relays":    "ingest has no outbox",
	"ingest.gap_charges":   "the ledger is never far behind",
	"ingest.gap_runs":      "the ledger is never far behind",
	"ledger.replays":       "nobody replays what is parked",
	"ledger.bus_deferred":  "it has no lanes",
	"tenants.bus_deferred": "no lane fails: all that it consumes can be read",
	"tenants.bus_parked":   "all that it consumes can be read",
	"tenants.passkeys":     "they need an authenticator",
}

// occasional are the tables into which rows come on a busy machine alone, and why.
var occasional = map[string]string{
	"grouping.bus_deferred": "a lane is deferred where it is over its share, or fails beside others",
	"ingest.bus_deferred":   "a lane is deferred where it is over its share, or fails beside others",
}

// written are the tables into which rows were ever inserted. Partitions count to theirs.
const written = `SELECT DISTINCT n.nspname || '.' || coalesce(whole.relname, c.relname)
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_class whole ON whole.oid = pg_partition_root(c.oid)
	WHERE n.nspname IN ('grouping', 'ingest', 'ledger', 'tenants') AND pg_stat_get_tuples_inserted(c.oid) > 0`

// noteWritten adds them to those of the months before: with a partition goes its count.
func (r *run) noteWritten(ctx context.Context) error {
	rows, err := r.db.Query(ctx, written)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	r.report.written = slices.Compact(slices.Sorted(slices.Values(append(r.report.written, names...))))
	return err
}

// Untouched lists the tables into which nothing came, though it should have,
// and those into which something came, though it should not.
func (r Report) Untouched() (untouched []string) {
	for _, w := range r.figures() {
		_, comes := slices.BinarySearch(r.written, w.Name)
		_, either := occasional[w.Name]
		if _, expected := idle[w.Name]; w.Kind == Rows && !either && comes == expected {
			untouched = append(untouched, w.Name)
		}
	}
	return untouched
}
