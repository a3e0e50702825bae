package soak

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
)

// idle are the tables that stay empty all year, with the reason: that
// they are flat shows nothing.
var idle = map[string]string{
	"ingest.bus_relays":      "ingest has no outbox",
	"ingest.gap_charges":     "the ledger is never far behind",
	"ingest.gap_runs":        "the ledger is never far behind",
	"ledger.replays":         "nobody replays what is parked",
	"ledger.bus_deferred":    "it has no lanes",
	"ledger.published_terms": "nothing writes it",
	"tenants.bus_deferred":   "no lane fails: all that it consumes can be read",
	"tenants.bus_parked":     "all that it consumes can be read",
	"tenants.passkeys":       "they need an authenticator",
}

// occasional are the tables that get rows only on a busy machine,
// with the reason.
var occasional = map[string]string{
	"grouping.bus_deferred": "a lane is deferred where it is over its share, or fails beside others",
	"ingest.bus_deferred":   "a lane is deferred where it is over its share, or fails beside others",
}

// written lists the tables into which rows were ever inserted. A
// partition counts as its table.
const written = `SELECT DISTINCT n.nspname || '.' || coalesce(whole.relname, c.relname)
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_class whole ON whole.oid = pg_partition_root(c.oid)
	WHERE n.nspname IN ('grouping', 'ingest', 'ledger', 'tenants') AND pg_stat_get_tuples_inserted(c.oid) > 0`

// noteWritten adds them to those of earlier months: the count of a
// dropped partition is lost.
func (r *run) noteWritten(ctx context.Context) error {
	rows, err := r.db.Query(ctx, written)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	r.report.written = slices.Compact(slices.Sorted(slices.Values(append(r.report.written, names...))))
	return err
}

// Untouched lists the tables that unexpectedly got no rows, and those
// that unexpectedly got some.
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
