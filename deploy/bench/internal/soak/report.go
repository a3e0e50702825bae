package soak

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/measure"
	"github.com/weirlog/weir/shared/outbox"
)

// A Kind is a measured quantity with its unit.
type Kind string

// The kinds.
const (
	Rows   Kind = "rows"
	Bytes  Kind = "bytes" // of a table on disk
	Topic  Kind = "topic" // bytes on disk
	Files  Kind = "files" // bytes on disk
	Memory Kind = "memory"

	Goroutines Kind = "goroutines"
)

// A Figure is one thing that is measured, and what it was at each look.
type Figure struct {
	Kind Kind
	Name string
	At   []int64 // 0 where there was none
}

// A Report is the measurements at the end of each month.
type Report struct {
	FlatFrom int // day
	Days     []int
	Figures  []*Figure // in the order in which they were found
	written  []string  // tables, sorted
}

// Note adds what something measures now.
func (r *Report) Note(kind Kind, name string, n int64) {
	i := slices.IndexFunc(r.Figures, func(f *Figure) bool { return f.Kind == kind && f.Name == name })
	if i < 0 {
		i = len(r.Figures)
		r.Figures = append(r.Figures, &Figure{Kind: kind, Name: name, At: make([]int64, len(r.Days))})
	}
	r.Figures[i].At[len(r.Days)-1] = n
}

// Begin begins the measurements after so many days.
func (r *Report) Begin(day int) {
	r.Days = append(r.Days, day)
	for _, f := range r.Figures {
		f.At = append(f.At, 0)
	}
}

// look measures everything.
func (r *run) look(ctx context.Context) error {
	if err := r.lookAtTables(ctx); err != nil {
		return err
	}
	err := r.lookAtFiles(filepath.Join(r.Dir, "kafka", "partitions"), Topic, func(partition string) string {
		return partition[:strings.LastIndexByte(partition, '-')]
	})
	if err == nil {
		err = r.lookAtFiles(filepath.Join(r.Dir, "weir"), Files, func(name string) string { return name })
	}
	r.report.Note(Memory, "heap in use", heapInUse())
	r.report.Note(Goroutines, "of the process", int64(runtime.NumGoroutine()))
	return err
}

// heapInUse is the least of several collections: what a request or a loop
// holds for a moment does not stay, nor does what pools hold, which goes
// with the second collection.
func heapInUse() int64 {
	least := int64(math.MaxInt64)
	for range 4 {
		var memory runtime.MemStats
		debug.FreeOSMemory()
		runtime.ReadMemStats(&memory)
		least = min(least, int64(memory.HeapInuse)) //nolint:gosec // far below
		time.Sleep(50 * time.Millisecond)           // lets what runs go on
	}
	return least
}

// tables of all modules; a partition counts as its table.
const tables = `SELECT n.nspname, coalesce(whole.relname, c.relname), sum(pg_total_relation_size(c.oid))::bigint
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_class whole ON whole.oid = pg_partition_root(c.oid)
	WHERE n.nspname IN ('grouping', 'ingest', 'ledger', 'tenants') AND c.relkind IN ('r', 'p') GROUP BY 1, 2 ORDER BY 1, 2`

// lookAtTables vacuums first, as happens within a month.
func (r *run) lookAtTables(ctx context.Context) error {
	for _, statement := range []string{`VACUUM`, asSystem} {
		if _, err := r.db.Exec(ctx, statement); err != nil {
			return err
		}
	}
	rows, err := r.db.Query(ctx, tables)
	if err != nil {
		return err
	}
	var schema, table string
	var n int64
	var names []pgx.Identifier
	_, err = pgx.ForEachRow(rows, []any{&schema, &table, &n}, func() error {
		names = append(names, pgx.Identifier{schema, table})
		r.report.Note(Bytes, schema+"."+table, n)
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range names {
		full := strings.Join(name, ".")
		if err := r.db.QueryRow(ctx, `SELECT `+counted(full)+` FROM `+name.Sanitize()).Scan(&n); err != nil {
			return err
		}
		r.report.Note(Rows, full, n)
	}
	return nil
}

// counted is the quantity that grows with a table's rows. The number of
// records in a range depends on the machine's speed, so ranges count by
// the records they cover.
func counted(table string) string {
	if table == "ledger.ranges" {
		return `coalesce(sum(next_offset - first_offset), 0)::bigint`
	}
	return `count(*)`
}

// lookAtFiles adds up the files under a directory by a name derived from
// that of the entry they are in.
func (r *run) lookAtFiles(dir string, kind Kind, name func(entry string) string) error {
	bytes, err := measure.Bytes(dir, func(path string) string {
		entry, _, _ := strings.Cut(strings.TrimPrefix(path, dir+string(filepath.Separator)), string(filepath.Separator))
		return name(entry)
	})
	for _, name := range slices.Sorted(maps.Keys(bytes)) {
		r.report.Note(kind, name, bytes[name])
	}
	return err
}

// idle are the tables that stay empty all year, with the reason: that
// they are flat shows nothing.
var idle = map[string]string{
	"grouping.answers":             "nobody decides about errors",
	"grouping.error_alert_counts":  "nobody sets an alert",
	"grouping.error_alert_log":     "nobody sets an alert",
	"grouping.error_alerts":        "nobody sets an alert",
	"grouping.error_owners":        "nobody says who looks after errors",
	"grouping.error_settings":      "nobody changes where metadata has the user",
	"grouping.group_splits":        "nobody decides about errors",
	"grouping.releases":            "no entry names a release",
	"grouping.source_map_joins":    "there is no source map",
	"grouping.source_map_parts":    "there is no source map",
	"grouping.source_map_searches": "there is no source map",
	"grouping.source_maps":         "there is no source map",
	"ingest.alert_clock":           "nobody sets an alert",
	"ingest.alert_history":         "nobody sets an alert",
	"ingest.alerts":                "nobody sets an alert",
	"ingest.deleted_objects":       "there is no archive",
	"ingest.facts":                 "nobody sets an alert",
	"ingest.gap_charges":           "the ledger is never far behind",
	"ingest.gap_runs":              "the ledger is never far behind",
	"ingest.moves":                 "there is no ClickHouse",
	"ingest.moving_blocks":         "there is no ClickHouse",
	"ingest.objects":               "there is no archive",
	"ingest.ingest_rules":          "nobody sets rules",
	"ingest.rejected_counts":       "all entries are valid",
	"ingest.rejected_samples":      "all entries are valid",
	"ingest.saved_searches":        "nobody saves a search",
	"ledger.replays":               "nobody replays what is parked",
	"ledger.bus_deferred":          "it has no lanes",
	"tenants.bus_deferred":         "no lane fails: all that it consumes can be read",
	"tenants.bus_parked":           "all that it consumes can be read",
	"tenants.passkeys":             "they need an authenticator",
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
	for _, f := range r.Figures {
		_, comes := slices.BinarySearch(r.written, f.Name)
		_, either := occasional[f.Name]
		if _, expected := idle[f.Name]; f.Kind == Rows && !either && comes == expected {
			untouched = append(untouched, f.Name)
		}
	}
	return untouched
}

// slack is how much something may grow beside a tenth: some things come
// and go in steps, such as files of a log.
var slack = map[Kind]int64{Rows: 16, Bytes: 512 << 10, Topic: 4 * segmentBytes, Files: 1 << 20, Memory: 8 << 20, Goroutines: 50}

// Grown lists what is not flat: in the second half of the time it
// exceeded its former maximum, or grew at each look.
func (r Report) Grown() (grown []string) {
	flat := slices.IndexFunc(r.Days, func(day int) bool { return day >= r.FlatFrom })
	if flat < 0 {
		return []string{fmt.Sprintf("nothing was looked at from day %d on", r.FlatFrom)}
	}
	half := flat + (len(r.Days)-flat)/2
	for _, f := range r.Figures {
		before, after := slices.Max(append(f.At[:half:half], 0)), slices.Max(f.At[half:])
		switch {
		case f.Kind == Rows && after <= byNumber[f.Name]:
		case after > before+before/10+slack[f.Kind]:
			grown = append(grown, fmt.Sprintf("%s %s: %d, and before at most %d", f.Kind, f.Name, after, before))
		case f.Kind == Rows && climbs(f.At[flat:]):
			grown = append(grown, fmt.Sprintf("%s %s: %d, more every month", f.Kind, f.Name, after))
		}
	}
	return grown
}

// byNumber are tables that are bounded by a number of rows, which
// they reach later.
var byNumber = map[string]int64{"ledger.facts": outbox.Retained, "grouping.facts": outbox.Retained}

// climbs reports whether each of enough looks, to tell slow growth from what
// comes and goes, showed more than the one before.
func climbs(at []int64) bool {
	const least = 4
	for i := 1; i < len(at); i++ {
		if at[i] <= at[i-1] {
			return false
		}
	}
	return len(at) >= least
}

// Write prints a line for each thing and a column for each month.
func (r Report) Write(out io.Writer) error {
	table := measure.NewTable(out, "What there was at the end of each month.")
	days := make([]string, len(r.Days))
	for i, day := range r.Days {
		days[i] = fmt.Sprint(day)
	}
	table.Row("day", "", strings.Join(days, "\t"))
	for _, f := range r.Figures {
		cells := []string{string(f.Kind), f.Name}
		for _, n := range f.At {
			if f.Kind == Rows || f.Kind == Goroutines {
				cells = append(cells, fmt.Sprint(n))
			} else {
				cells = append(cells, fmt.Sprintf("%.1fM", float64(n)/(1<<20)))
			}
		}
		table.Row(cells...)
	}
	return table.Flush()
}
