package soak

import (
	"cmp"
	"context"
	"io/fs"
	"math"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
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
