package fairness

import (
	"fmt"
	"io"
	"runtime"
	"text/tabwriter"
	"time"
)

// What a quiet organization may notice of a noisy one, and how much memory the process may take
// meanwhile.
const (
	goalFactor = 2                      // times what it is alone (p99), or
	goalView   = 250 * time.Millisecond // p99, whichever is more
	goalMemory = 512 << 20              // bytes resident
)

// Write prints a line for each attack, and marks with an exclamation mark what missed a goal.
func Write(out io.Writer, config Config, results []Result) (missed int, err error) {
	fmt.Fprintf(out, "\n%d cores, %s/%s, %s. %d quiet organizations, watched for %s beside each attack;\n"+
		"Weir, PostgreSQL, the attack and the watch share the machine. p50 / p99 in ms.\n\n",
		runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), config.Quiet, config.Each)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "beside\tposts")
	for view := range views {
		fmt.Fprintf(table, "\t%s", view)
	}
	fmt.Fprintln(table, "\tmemory\trefused\tfailed\tsettled\tdrained\tthe noisy one")
	for _, result := range results {
		cells, wrong := result.cells(results[0])
		missed += wrong
		fmt.Fprint(table, result.Attack)
		for _, cell := range cells {
			fmt.Fprint(table, "\t"+cell)
		}
		fmt.Fprintln(table)
	}
	if err := table.Flush(); err != nil {
		return missed, err
	}
	explain(out, results)
	fmt.Fprintf(out, "\nGoals: each p99 under twice the one alone or under %s; no post refused, nothing failed; at most %d MB;\n"+
		"settled, then drained, within %s; the noisy one refused at least once, unless it is within its limits. Missed: %d.\n",
		goalView, goalMemory>>20, settleTimeout, missed)
	return missed, nil
}

// goal is how long a view may take at the 99th percentile, given what it takes without any attack.
func goal(alone time.Duration) time.Duration { return max(goalView, goalFactor*alone) }

// cells are the columns of a result, and how many of them miss a goal.
func (r Result) cells(alone Result) (cells []string, missed int) {
	cell := func(text string, met bool) {
		if !met {
			text += "!"
			missed++
		}
		cells = append(cells, text)
	}
	cell(fmt.Sprint(r.Probes), r.Probes > 0)
	for view, took := range r.Took {
		cell(fmt.Sprintf("%.1f/%.0f", milliseconds(took[0]), milliseconds(took[1])), took[1] <= goal(alone.Took[view][1]))
	}
	cell(fmt.Sprintf("%d MB", r.Peak>>20), r.Peak <= goalMemory)
	cell(fmt.Sprint(r.Refused), r.Refused == 0)
	cell(fmt.Sprint(len(r.Failed)), len(r.Failed) == 0)
	cell(r.Settled.Round(100*time.Millisecond).String(), r.Settled < settleTimeout)
	cell(r.Drained.Round(100*time.Millisecond).String(), r.Drained < settleTimeout)
	if r.Answers == nil {
		cell("-", true)
		return cells, missed
	}
	text := r.Answers.String()
	if r.Lawful && !r.Answers.Refused() {
		text += " (within its limits)"
	}
	cell(text, r.Lawful || r.Answers.Refused())
	return cells, missed
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// explain reports what the attacks are, and the first thing that failed beside each.
func explain(out io.Writer, results []Result) {
	fmt.Fprintln(out)
	for _, result := range results {
		fmt.Fprintf(out, "%s: %s\n", result.Attack, result.Does)
		if len(result.Failed) > 0 {
			fmt.Fprintf(out, "  %d failures of quiet organizations, the first: %v\n", len(result.Failed), result.Failed[0])
		}
	}
}
