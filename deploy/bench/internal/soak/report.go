package soak

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"

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

// A Size is a measured value.
type Size struct {
	Kind Kind
	Name string
	N    int64
}

// look measures everything.
func (r *run) look(ctx context.Context) ([]Size, error) {
	sizes, err := r.lookAtTables(ctx)
	if err != nil {
		return nil, err
	}
	logs, err := sizesUnder(filepath.Join(r.Dir, "kafka", "partitions"), Topic, func(path string) string {
		partition := strings.Split(path, string(filepath.Separator))[0]
		return partition[:strings.LastIndexByte(partition, '-')]
	})
	if err != nil {
		return nil, err
	}
	files, err := sizesUnder(filepath.Join(r.Dir, "weir"), Files, func(path string) string { return strings.Split(path, string(filepath.Separator))[0] })
	return slices.Concat(sizes, logs, files, []Size{
		{Memory, "heap in use", heapInUse()}, {Goroutines, "of the process", int64(runtime.NumGoroutine())},
	}), err
}

// heapInUse is the least of several collections: what a request or a loop
// holds for a moment does not stay, nor does what pools hold, which goes
// with the second collection.
func heapInUse() int64 {
	least := int64(math.MaxInt64)
	for range 8 {
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
func (r *run) lookAtTables(ctx context.Context) (sizes []Size, err error) {
	for _, statement := range []string{`VACUUM`, asSystem} {
		if _, err := r.db.Exec(ctx, statement); err != nil {
			return nil, err
		}
	}
	rows, err := r.db.Query(ctx, tables)
	if err != nil {
		return nil, err
	}
	var schema, table string
	var bytes int64
	var names []pgx.Identifier
	_, err = pgx.ForEachRow(rows, []any{&schema, &table, &bytes}, func() error {
		names = append(names, pgx.Identifier{schema, table})
		sizes = append(sizes, Size{Bytes, schema + "." + table, bytes})
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		size := Size{Kind: Rows, Name: strings.Join(name, ".")}
		if err := r.db.QueryRow(ctx, `SELECT `+counted(size.Name)+` FROM `+name.Sanitize()).Scan(&size.N); err != nil {
			return nil, err
		}
		sizes = append(sizes, size)
	}
	return sizes, nil
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

// sizesUnder adds up the files under a directory by a name derived
// from their paths.
func sizesUnder(dir string, kind Kind, name func(path string) string) (sizes []Size, err error) {
	bytes := map[string]int64{}
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(dir, path)
		bytes[name(relative)] += info.Size()
		return err
	})
	for name, n := range bytes {
		sizes = append(sizes, Size{kind, name, n})
	}
	slices.SortFunc(sizes, func(a, b Size) int { return cmp.Compare(a.Name, b.Name) })
	return sizes, err
}

// idle are the tables that stay empty all year, with the reason: that
// they are flat shows nothing.
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

// A Report is the measurements at the end of each month.
type Report struct {
	FlatFrom int // day
	Looks    []Look
	written  []string // tables, sorted
}

// A Look is the measurements after so many days.
type Look struct {
	Day   int
	Sizes []Size
}

// figure is one thing that is measured every month.
type figure struct {
	Kind Kind
	Name string
}

// slack is how much something may grow beside a tenth: some things come
// and go in steps, such as files of a log.
var slack = map[Kind]int64{Rows: 16, Bytes: 512 << 10, Topic: 4 * segmentBytes, Files: 1 << 20, Memory: 8 << 20, Goroutines: 50}

// Grown lists what is not flat: in the second half of the time it
// exceeded its former maximum, or grew at each look.
func (r Report) Grown() (grown []string) {
	flat := slices.IndexFunc(r.Looks, func(look Look) bool { return look.Day >= r.FlatFrom })
	if flat < 0 {
		return []string{fmt.Sprintf("nothing was looked at from day %d on", r.FlatFrom)}
	}
	half := flat + (len(r.Looks)-flat)/2
	for _, w := range r.figures() {
		before, after := most(r.Looks[:half], w), most(r.Looks[half:], w)
		switch {
		case w.Kind == Rows && after <= byNumber[w.Name]:
		case after > before+before/10+slack[w.Kind]:
			grown = append(grown, fmt.Sprintf("%s %s: %d, and before at most %d", w.Kind, w.Name, after, before))
		case w.Kind == Rows && climbs(r.Looks[flat:], w):
			grown = append(grown, fmt.Sprintf("%s %s: %d, more every month", w.Kind, w.Name, after))
		}
	}
	return grown
}

// byNumber are tables that are bounded by a number of rows, which
// they reach later.
var byNumber = map[string]int64{"ledger.facts": outbox.Retained, "grouping.facts": outbox.Retained}

// minClimb is the number of looks that distinguishes slow growth from
// what comes and goes.
const minClimb = 4

// climbs reports whether each look showed more than the one before.
func climbs(looks []Look, w figure) bool {
	for i := 1; i < len(looks); i++ {
		if looks[i].size(w) <= looks[i-1].size(w) {
			return false
		}
	}
	return len(looks) >= minClimb
}

func most(looks []Look, w figure) (n int64) {
	for _, look := range looks {
		n = max(n, look.size(w))
	}
	return n
}

// figures returns everything that was ever measured, in the order in
// which it was found.
func (r Report) figures() (all []figure) {
	seen := map[figure]bool{}
	for _, look := range r.Looks {
		for _, size := range look.Sizes {
			if w := (figure{size.Kind, size.Name}); !seen[w] {
				all, seen[w] = append(all, w), true
			}
		}
	}
	return all
}

func (l Look) size(w figure) int64 {
	for _, size := range l.Sizes {
		if size.Kind == w.Kind && size.Name == w.Name {
			return size.N
		}
	}
	return 0
}

// Write prints a line for each thing and a column for each month.
func (r Report) Write(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "day\t\t")
	for _, look := range r.Looks {
		fmt.Fprintf(table, "%d\t", look.Day)
	}
	fmt.Fprintln(table)
	for _, w := range r.figures() {
		fmt.Fprintf(table, "%s\t%s\t", w.Kind, w.Name)
		for _, look := range r.Looks {
			fmt.Fprintf(table, "%s\t", shown(w, look.size(w)))
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}

// shown formats a number for people.
func shown(w figure, n int64) string {
	if w.Kind == Rows || w.Kind == Goroutines {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%.1fM", float64(n)/(1<<20))
}
