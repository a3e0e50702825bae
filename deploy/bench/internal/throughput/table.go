package throughput

import (
	"fmt"
	"io"
	"runtime"
	"text/tabwriter"
	"time"

	"github.com/weirlog/weir/deploy/bench/internal/measure"
)

// The least that a sound design achieves on two cores.
const (
	goalEntries = 50_000      // accepted a second
	goalView    = time.Second // p99 until each view shows a batch, at half of that load
)

// Write prints the results side by side.
func Write(out io.Writer, config Config, results []Result) error {
	fmt.Fprintf(out, "\n%d cores, %s/%s, %s. Batches of %d entries, %d KB. Load, Weir, PostgreSQL and broker share the machine.\n\n",
		runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), measure.EntriesPerBatch, len(measure.NewBody(measure.EntriesPerBatch).Text)>>10)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(title string, cell func(Result) string) {
		fmt.Fprint(table, title)
		for _, r := range results {
			text := "skipped"
			if r.Skipped == nil {
				text = cell(r)
			}
			fmt.Fprint(table, "\t"+text)
		}
		fmt.Fprintln(table)
	}
	fmt.Fprint(table, "")
	for _, r := range results {
		fmt.Fprint(table, "\t"+r.Broker)
	}
	fmt.Fprintln(table)
	row("full load: entries/s accepted", func(r Result) string { return fmt.Sprintf("%.0f", r.Full.EntriesPerSecond) })
	row("  answer p50 / p99 / longest", func(r Result) string { return durations(r.Full.Answer[:]...) })
	row("  CPU per batch: Weir / Postgres / broker / load", func(r Result) string { return r.Full.CPU.String() })
	row("  resident / peak", func(r Result) string { return megabytes(r.Full.Memory, r.Full.Peak) })
	row("  then caught up: balance / groups / read-back", func(r Result) string { return durations(r.CatchUp.balance, r.CatchUp.groups, r.CatchUp.entries) })
	row("  entries/s for each core of Weir and PostgreSQL", func(r Result) string { return perCore(r.Full.CPU) })
	row("  kept of an entry: log / log store / groups / books", func(r Result) string { return r.Kept.String() })
	row("  connections to PostgreSQL", func(r Result) string { return fmt.Sprint(r.Kept.Connections) })
	row("paced load: entries/s accepted", func(r Result) string { return fmt.Sprintf("%.0f", r.Paced.EntriesPerSecond) })
	row("  answer p50 / p99 / longest", func(r Result) string { return durations(r.Paced.Answer[:]...) })
	row("  until the balance shows it p50 / p99", func(r Result) string { return durations(r.Views.Balance[:]...) })
	row("  until the error group shows it p50 / p99", func(r Result) string { return durations(r.Views.Groups[:]...) })
	row("  until it can be read back p50 / p99", func(r Result) string { return durations(r.Views.Entries[:]...) })
	row("  CPU per batch: Weir / Postgres / broker / load", func(r Result) string { return r.Paced.CPU.String() })
	row("  resident / peak", func(r Result) string { return megabytes(r.Paced.Memory, r.Paced.Peak) })
	row("resident before any load", func(r Result) string { return megabytes(r.Idle) })
	row("probes", func(r Result) string { return fmt.Sprint(r.Probed) })
	row(fmt.Sprintf("goal, all in one process: %d entries/s", goalEntries), func(r Result) string {
		return verdict(r, r.Full.EntriesPerSecond >= goalEntries)
	})
	row(fmt.Sprintf("goal, all in one process: views within %s (p99)", goalView), func(r Result) string {
		return verdict(r, max(r.Views.Balance[1], r.Views.Groups[1], r.Views.Entries[1]) <= goalView)
	})
	return table.Flush()
}

// verdict reports whether a goal is met. The goals are for the embedded
// broker; another one takes a share of the cores.
func verdict(r Result, met bool) string {
	switch {
	case r.Broker != embedded.name:
		return "-"
	case met:
		return "met"
	}
	return "missed"
}

// String writes the costs of a batch in microseconds.
func (c CPU) String() string {
	text := ""
	for i, d := range []time.Duration{c.Weir, c.Postgres, c.Broker, c.Load} {
		if i > 0 {
			text += " / "
		}
		if d == 0 {
			text += "-"
			continue
		}
		text += fmt.Sprintf("%d µs", d.Microseconds())
	}
	return text
}

// perCore returns how many entries a second a dedicated core handles,
// from the request to all views.
func perCore(c CPU) string {
	if c.Postgres == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f", measure.EntriesPerBatch/(c.Weir+c.Postgres).Seconds())
}

// String writes the sizes in bytes.
func (k Kept) String() string {
	log := "-"
	if k.Log > 0 {
		log = fmt.Sprintf("%d B", k.Log)
	}
	return fmt.Sprintf("%s / %d B / %d B / %d B", log, k.Entries, k.Groups, k.Books)
}

func durations(all ...time.Duration) (text string) {
	for i, d := range all {
		if i > 0 {
			text += " / "
		}
		text += fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	}
	return text
}

func megabytes(all ...int64) (text string) {
	for i, n := range all {
		if i > 0 {
			text += " / "
		}
		text += fmt.Sprintf("%d MB", n>>20)
	}
	return text
}
