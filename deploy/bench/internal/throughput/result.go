package throughput

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/weirlog/weir/deploy/bench/internal/subject"
	"github.com/weirlog/weir/shared/measure"
)

// A result is what was measured with one broker.
type result struct {
	broker   string
	rest     []time.Duration // CPU of each process, of a second without load
	idle     int64           // bytes resident then
	phases   []phase         // full load, parts of it, and fixed rates
	caughtUp [subject.Views]time.Duration
	kept     kept    // of an entry, once views had caught up
	naive    []phase // the naive server's at the same rates; nil: none was measured
}

// A phase is one stretch of load.
type phase struct {
	name      string
	most      float64 // times the CPU of a batch at full load that one may cost
	batches   int64
	perSecond float64                        // entries
	answers   []time.Duration                // p50, p99, longest
	views     [subject.Views][]time.Duration // p50 and p99 until each shows a batch; nil: not looked at
	cpu       []time.Duration                // of a batch, of each process
	switches  []float64                      // of a processor, for a batch, of each process
	wal       int64                          // bytes of an entry

	resident, peak int64 // bytes of the measured process
}

// server is the CPU of a batch, of all processes but the load.
func (p phase) server() (all time.Duration) {
	for _, cpu := range p.cpu[:load] {
		all += cpu
	}
	return all
}

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
		strings.ToUpper(r.broker[:1])+r.broker[1:], subject.EntriesPerBatch, len(subject.NewBody(subject.EntriesPerBatch, 0).Text)>>10))
	row := func(title string, cell func(p phase) string) {
		cells := []string{title}
		for _, p := range r.phases {
			cells = append(cells, cell(p))
		}
		table.Row(cells...)
	}
	row("load", func(p phase) string { return p.name })
	row("entries/s accepted", func(p phase) string { return fmt.Sprintf("%.0f", p.perSecond) })
	for i, name := range []string{"CPU per batch, µs: Weir", "  PostgreSQL", "  broker", "  load"} {
		row(name, func(p phase) string { return micros(p.cpu[i]) })
	}
	row("  without the load, of that at full load", func(p phase) string { return fmt.Sprintf("%.2f", r.factor(p)) })
	if r.naive != nil {
		cells := []string{"  naive server, which keeps nothing / broker"}
		for _, p := range r.naive {
			cells = append(cells, micros(p.cpu[weir])+" / "+micros(p.cpu[node]))
		}
		table.Row(cells...)
	}
	row("entries/s for each core of Weir and PostgreSQL", perCore)
	row("context switches per batch: Weir / PostgreSQL", func(p phase) string { return fmt.Sprintf("%.1f / %.1f", p.switches[weir], p.switches[database]) })
	row("answer p50 / p99 / longest", func(p phase) string { return measure.Millis(p.answers...) })
	for view, name := range subject.ViewNames {
		row("until the "+name+" shows it p50 / p99", func(p phase) string {
			if p.views[view] == nil {
				return "-"
			}
			return measure.Millis(p.views[view]...)
		})
	}
	row("resident / peak", func(p phase) string { return measure.Megabytes(p.resident, p.peak) })
	row("PostgreSQL's log, bytes of an entry", func(p phase) string { return fmt.Sprint(p.wal) })
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nAfter full load balance / groups / read-back had caught up in %s.\n", measure.Millis(r.caughtUp[:]...))
	fmt.Fprintf(out, "Of an entry log / log store / groups / books keep %s.\n", r.kept)
	fmt.Fprintf(out, "%d connections to PostgreSQL.\n", r.kept.connections)
	fmt.Fprintf(out, "At rest Weir / PostgreSQL / broker take %s of a core; Weir has %s.\n", percents(r.rest[:load]...), measure.Megabytes(r.idle))
	r.goals(out)
	return nil
}

func micros(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return fmt.Sprint(d.Microseconds())
}

// factor is how many times the CPU of a batch at full load it took.
func (r *result) factor(p phase) float64 {
	return float64(p.server()) / float64(max(1, r.phases[0].server()))
}

// perCore returns how many entries a second a dedicated core handles, from
// the request to all views.
func perCore(p phase) string {
	if p.cpu[database] == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f", subject.EntriesPerBatch/(p.cpu[weir]+p.cpu[database]).Seconds())
}

func percents(shares ...time.Duration) string {
	cells := make([]string, len(shares))
	for i, share := range shares {
		cells[i] = fmt.Sprintf("%.1f", 100*share.Seconds())
	}
	return strings.Join(cells, " / ") + " %"
}

func (r *result) goals(out io.Writer) {
	full := r.phases[0]
	entries := goalApache
	if r.naive == nil {
		entries = goalEmbedded
	}
	goal := func(met bool, text string, values ...any) { fmt.Fprintln(out, measure.Goal(met, text, values...)) }
	goal(full.perSecond >= float64(entries), "%d entries/s at full load", entries)
	for _, p := range r.phases[1:] {
		goal(r.factor(p) <= p.most, "at %s a batch costs %g times that of full load at most: %.2f", p.name, p.most, r.factor(p))
		if p.views[0] == nil {
			continue
		}
		longest := time.Duration(0)
		for _, view := range p.views {
			longest = max(longest, view[1])
		}
		goal(longest <= goalView, "at %s views show a batch within %s (p99): %s", p.name, goalView, longest.Round(time.Millisecond))
	}
	all := r.rest[weir] + r.rest[database] + r.rest[node]
	goal(r.rest[weir] <= goalRestWeir && all <= goalRestAll, "at rest Weir takes 1 %% of a core at most, and all 2 %%: %s",
		percents(r.rest[weir], all))
	goal(full.peak <= goalMemory && r.idle <= goalIdle, "%d MB at full load, %d at rest: %s", goalMemory>>20, goalIdle>>20,
		measure.Megabytes(full.peak, r.idle))
}
