package throughput

import (
	"fmt"
	"os"
	"time"

	"github.com/weirlog/weir/deploy/bench/internal/subject"
	"github.com/weirlog/weir/shared/testenv/measure"
)

// The least that a sound design achieves on two cores with all in one
// process; another broker takes a share of the cores.
const (
	goalEntries = 50_000      // accepted a second
	goalView    = time.Second // p99 until each view shows a batch, at half of that load
)

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
		row(fmt.Sprintf("  until the %s shows it p50 / p99", view), func(r *result) string { return measure.Millis(r.views[view].Percentiles(50, 99)...) })
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
