package throughput

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/deploy/bench/internal/subject"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/testenv/measure"
)

// The least that a sound design achieves on two cores with all in one
// process; another broker takes a share of the cores.
const (
	goalEntries = 50_000      // accepted a second
	goalView    = time.Second // p99 until each view shows a batch, at half of that load
)

// A result is what was measured with one broker.
type result struct {
	broker      string
	full, paced phase
	caughtUp    [subject.Views]time.Duration // after the full load
	kept        kept                         // of an entry, once views had caught up
	views       [subject.Views]measure.Samples
	idle        int64 // bytes resident before any load
}

// A phase is one stretch of load.
type phase struct {
	perSecond float64         // entries
	answers   []time.Duration // p50, p99, longest
	cpu       []time.Duration // of a batch, of each process
	memory    measure.Usage   // of the measured process
}

// write prints the results side by side.
func write(results []*result) error {
	if len(results) == 0 {
		return nil
	}
	table := measure.NewTable(os.Stdout, fmt.Sprintf("Batches of %d entries, %d KB. Load, Weir, PostgreSQL and broker share the machine.",
		subject.EntriesPerBatch, len(subject.NewBody(subject.EntriesPerBatch).Text)>>10))
	row := func(title string, cell func(r *result) string) {
		cells := []string{title}
		for _, r := range results {
			cells = append(cells, cell(r))
		}
		table.Row(cells...)
	}
	load := func(title string, of func(*result) *phase) {
		row(title+": entries/s accepted", func(r *result) string { return fmt.Sprintf("%.0f", of(r).perSecond) })
		row("  answer p50 / p99 / longest", func(r *result) string { return measure.Millis(of(r).answers...) })
		row("  CPU per batch: Weir / Postgres / broker / load", func(r *result) string { return measure.Micros(of(r).cpu...) })
		row("  resident / peak", func(r *result) string { return measure.Megabytes(of(r).memory.Memory, of(r).memory.Peak) })
	}
	row("", func(r *result) string { return r.broker })
	load("full load", func(r *result) *phase { return &r.full })
	row("  then caught up: balance / groups / read-back", func(r *result) string { return measure.Millis(r.caughtUp[:]...) })
	row("  entries/s for each core of Weir and PostgreSQL", func(r *result) string { return perCore(r.full.cpu) })
	row("  kept of an entry: log / log store / groups / books", func(r *result) string { return r.kept.String() })
	row("  connections to PostgreSQL", func(r *result) string { return fmt.Sprint(r.kept.connections) })
	load("paced load", func(r *result) *phase { return &r.paced })
	for view := range subject.Views {
		row(fmt.Sprintf("  until the %s shows it p50 / p99", subject.ViewNames[view]), func(r *result) string {
			return measure.Millis(r.views[view].Percentiles(50, 99)...)
		})
	}
	row("resident before any load", func(r *result) string { return measure.Megabytes(r.idle) })
	goal := func(title string, met func(*result) bool) {
		row("goal, all in one process: "+title, func(r *result) string {
			if r.broker != embedded {
				return "-"
			}
			return map[bool]string{true: "met", false: "missed"}[met(r)]
		})
	}
	goal(fmt.Sprintf("%d entries/s", goalEntries), func(r *result) bool { return r.full.perSecond >= goalEntries })
	goal(fmt.Sprintf("views within %s (p99)", goalView), func(r *result) bool {
		longest := time.Duration(0)
		for view := range r.views {
			longest = max(longest, r.views[view].Percentiles(99)[0])
		}
		return longest <= goalView
	})
	return table.Flush()
}

// perCore returns how many entries a second a dedicated core handles, from
// the request to all views.
func perCore(cpu []time.Duration) string {
	weir, postgres := cpu[0], cpu[1]
	if postgres == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f", subject.EntriesPerBatch/(weir+postgres).Seconds())
}

// kept is how many bytes an installation stores: in one copy of the log, and
// in the tables of the log store, groups and books with their indexes.
type kept struct {
	bytes       [4]int64
	connections int // to PostgreSQL
}

// each returns what each of n entries has added since before.
func (k kept) each(before kept, n int64) kept {
	for i := range k.bytes {
		k.bytes[i] = (k.bytes[i] - before.bytes[i]) / max(1, n)
	}
	return k
}

// String shows the bytes; the log's are unknown if the broker is elsewhere.
func (k kept) String() string {
	text := fmt.Sprintf("%d B / %d B / %d B / %d B", k.bytes[0], k.bytes[1], k.bytes[2], k.bytes[3])
	if k.bytes[0] == 0 {
		return "-" + strings.TrimPrefix(text, "0 B")
	}
	return text
}

const keptBytes = `SELECT coalesce(sum(bytes) FILTER (WHERE schema = 'ingest'), 0), coalesce(sum(bytes) FILTER (WHERE schema = 'grouping'), 0),
	coalesce(sum(bytes) FILTER (WHERE schema = 'ledger'), 0),
	(SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid())
	FROM (SELECT n.nspname AS schema, pg_total_relation_size(c.oid)::bigint AS bytes FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind = 'r') AS tables`

// keptNow measures the files and the database.
func (r *run) keptNow(ctx context.Context) (k kept, err error) {
	conn, err := pgx.Connect(ctx, r.database)
	if err != nil {
		return k, err
	}
	defer conn.Close(ctx)
	if err := conn.QueryRow(ctx, keptBytes).Scan(&k.bytes[1], &k.bytes[2], &k.bytes[3], &k.connections); err != nil {
		return k, err
	}
	k.bytes[0], err = logBytes(r.dir)
	return k, err
}

// logBytes adds up the log's segments below dir, without preallocated
// indexes; 0 if the broker is elsewhere. Files may go meanwhile.
func logBytes(dir string) (bytes int64, err error) {
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		partition := filepath.Base(filepath.Dir(path))
		if err == nil && !entry.IsDir() && strings.HasPrefix(partition, contract.TopicLogs+"-") && !strings.HasSuffix(path, "index") {
			var info fs.FileInfo
			if info, err = entry.Info(); err == nil {
				bytes += info.Size()
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return bytes, err
}
