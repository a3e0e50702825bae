package throughput

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/deploy/bench/internal/subject"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/measure"
)

// A result is what was measured with one broker.
type result struct {
	broker string
	rest   []time.Duration // CPU of each process, of a second without load
	idle   int64           // bytes resident then
	phases []phase         // full load, parts of it, and a fixed rate
	kept   kept            // of an entry, once views had caught up
	naive  []phase         // the naive server's at the same rates
}

// Where a batch of a watched tenant is shown: in the views, and in the live tail.
const (
	tail   = subject.Views
	places = subject.Views + 1 // how many there are
)

// A phase is one stretch of load.
type phase struct {
	name      string
	most      float64                 // times the CPU of a batch at full load that one may cost
	perSecond float64                 // entries
	answers   []time.Duration         // p50, p99, longest
	views     [places][]time.Duration // p50 and p99 until each shows a batch; nil: not looked at
	cpu       []time.Duration         // of a batch, of each process
	switches  []float64               // of contexts, the same
	wal       float64                 // bytes of PostgreSQL's own log, of an entry

	resident, peak int64 // bytes of the measured process
}

// server is the CPU of a batch, of all processes but the load.
func (p phase) server() time.Duration { return p.cpu[weir] + p.cpu[database] + p.cpu[node] }

// The measured processes, in their order.
const (
	weir = iota
	database
	node
	load
)

// What a sound design achieves on two cores with everything on one machine.
const (
	goalEmbedded = 200_000 // entries accepted a second
	goalApache   = 150_000
	goalPart     = 1.5 // times the CPU of a batch at full load, at a part of it
	goalRate     = 4.0 // the same at a fixed rate
	goalView     = 500 * time.Millisecond
	goalRestWeir = 10 * time.Millisecond // CPU of a second
	goalRestAll  = 20 * time.Millisecond
	goalMemory   = 256 << 20
	goalIdle     = 60 << 20
)

// write prints a table with a column for each load, then the rest and goals.
func (r *result) write(out io.Writer) error {
	table := measure.NewTable(out, fmt.Sprintf("%s. Batches of %d entries, %d KB. Load, Weir, PostgreSQL and broker share the machine.",
		r.broker, subject.EntriesPerBatch, len(subject.NewBody(subject.EntriesPerBatch, 0).Text)>>10))
	row := func(title string, phases []phase, cell func(p phase) string) {
		cells := []string{title}
		for _, p := range phases {
			cells = append(cells, cell(p))
		}
		table.Row(cells...)
	}
	row("load", r.phases, func(p phase) string { return p.name })
	row("entries/s accepted", r.phases, func(p phase) string { return fmt.Sprintf("%.0f", p.perSecond) })
	for i, name := range []string{"CPU per batch, µs: Weir", "  PostgreSQL", "  broker", "  load"} {
		row(name, r.phases, func(p phase) string { return fmt.Sprint(p.cpu[i].Microseconds()) })
	}
	row("  without the load, of that at full load", r.phases, func(p phase) string { return fmt.Sprintf("%.2f", r.factor(p)) })
	row("  naive server, which keeps nothing / broker", r.naive, func(p phase) string {
		return fmt.Sprintf("%d / %d", p.cpu[weir].Microseconds(), p.cpu[node].Microseconds())
	})
	row("context switches per batch: Weir / PostgreSQL / broker", r.phases, func(p phase) string {
		return fmt.Sprintf("%.0f / %.0f / %.0f", p.switches[weir], p.switches[database], p.switches[node])
	})
	row("bytes of PostgreSQL's log per entry", r.phases, func(p phase) string { return fmt.Sprintf("%.0f", p.wal) })
	row("entries/s for each core of Weir and PostgreSQL", r.phases, func(p phase) string {
		return fmt.Sprintf("%.0f", subject.EntriesPerBatch/max(time.Microsecond, p.cpu[weir]+p.cpu[database]).Seconds())
	})
	row("answer p50 / p99 / longest", r.phases, func(p phase) string { return measure.Millis(p.answers...) })
	for view, name := range append(subject.ViewNames[:], "live tail") {
		row("until the "+name+" shows it p50 / p99", r.phases, func(p phase) string {
			if p.views[view] == nil {
				return "-"
			}
			return measure.Millis(p.views[view]...)
		})
	}
	row("resident / peak", r.phases, func(p phase) string { return measure.Megabytes(p.resident, p.peak) })
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nOf an entry log / log store / groups / books keep %s.\n", r.kept)
	fmt.Fprintf(out, "At rest Weir / PostgreSQL / broker take %s of a core; Weir has %s.\n", percents(r.rest[:load]...), measure.Megabytes(r.idle))
	r.goals(out)
	return nil
}

// factor is how many times the CPU of a batch at full load it took.
func (r *result) factor(p phase) float64 {
	return float64(p.server()) / float64(max(1, r.phases[0].server()))
}

func percents(shares ...time.Duration) string {
	cells := make([]string, len(shares))
	for i, share := range shares {
		cells[i] = fmt.Sprintf("%.1f", 100*share.Seconds())
	}
	return strings.Join(cells, " / ") + " %"
}

func (r *result) goals(out io.Writer) {
	full, entries := r.phases[0], goalEmbedded
	if r.broker == outside {
		entries = goalApache
	}
	goal := func(met bool, text string, values ...any) { fmt.Fprintln(out, measure.Goal(met, text, values...)) }
	goal(full.perSecond >= float64(entries), "%d entries/s at full load", entries)
	for _, p := range r.phases[1:] {
		goal(r.factor(p) <= p.most, "at %s a batch costs %g times that of full load at most: %.2f", p.name, p.most, r.factor(p))
		longest := slices.MaxFunc(p.views[:], func(a, b []time.Duration) int { return cmp.Compare(a[1], b[1]) })[1]
		goal(longest <= goalView, "at %s views and the live tail show a batch within %s (p99): %s", p.name, goalView, longest.Round(time.Millisecond))
	}
	all := r.rest[weir] + r.rest[database] + r.rest[node]
	goal(r.rest[weir] <= goalRestWeir && all <= goalRestAll, "at rest Weir takes 1 %% of a core at most, and all 2 %%: %s",
		percents(r.rest[weir], all))
	goal(full.peak <= goalMemory && r.idle <= goalIdle, "%d MB at full load, %d at rest: %s", goalMemory>>20, goalIdle>>20,
		measure.Megabytes(full.peak, r.idle))
}

// kept is how many bytes are stored: in one copy of the log, whose bytes are
// unknown if the broker is elsewhere, and in the tables of log store, groups
// and books with their indexes.
type kept [4]int64

func (k kept) String() string {
	text := fmt.Sprintf("%d B / %d B / %d B / %d B", k[0], k[1], k[2], k[3])
	if k[0] == 0 {
		return "-" + strings.TrimPrefix(text, "0 B")
	}
	return text
}

const keptBytes = `SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_namespace n LEFT JOIN pg_class c
	ON n.oid = c.relnamespace AND c.relkind = 'r' WHERE n.nspname IN ('ingest', 'grouping', 'ledger') GROUP BY n.nspname
	ORDER BY array_position(ARRAY['ingest', 'grouping', 'ledger'], n.nspname::text)`

// written is how many bytes PostgreSQL has ever written to its own log.
func (r *run) written(ctx context.Context) (bytes int64, err error) {
	conn, err := pgx.Connect(ctx, r.database)
	if err != nil {
		return 0, err
	}
	defer conn.Close(ctx)
	err = conn.QueryRow(ctx, `SELECT (pg_current_wal_lsn() - '0/0')::bigint`).Scan(&bytes)
	return bytes, err
}

// kept measures the files and the database.
func (r *run) kept(ctx context.Context) (k kept, err error) {
	conn, err := pgx.Connect(ctx, r.database)
	if err != nil {
		return k, err
	}
	defer conn.Close(ctx)
	rows, _ := conn.Query(ctx, keptBytes) // its error is in the rows
	schemas, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	copy(k[1:], schemas)
	// The log's segments, without preallocated indexes.
	files, unread := measure.Bytes(r.dir, func(path string) string {
		if strings.HasPrefix(filepath.Base(filepath.Dir(path)), contract.TopicLogs+"-") && !strings.HasSuffix(path, "index") {
			return contract.TopicLogs
		}
		return ""
	})
	k[0] = files[contract.TopicLogs]
	return k, cmp.Or(err, unread)
}
