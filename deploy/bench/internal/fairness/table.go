package fairness

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/weirlog/weir/deploy/bench/internal/measure"
)

// What a quiet organization may notice of a noisy one, and the
// process's memory meanwhile.
const (
	goalFactor = 2                      // times its p99 alone, or
	goalView   = 250 * time.Millisecond // p99, whichever is more
	goalMemory = 512 << 20              // bytes resident
)

// Write prints a line for each attack and one for all together. An
// exclamation mark means a missed goal, a question mark one that too
// few samples leave open.
func Write(out io.Writer, config Config, results []Result) (missed int, err error) {
	fmt.Fprintf(out, "\n%d cores, %s/%s, %s. %d quiet organizations, watched for %s beside each attack; the cores that Weir, PostgreSQL,\n"+
		"the attack and the watch keep busy are shared by them. p50 / p99 in ms, and in brackets where p99 lies, each end certain to 95 %%.\n\n",
		runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), config.Quiet, config.Each)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "beside\tposts")
	for view := range views {
		fmt.Fprintf(table, "\t%s", view)
	}
	fmt.Fprintln(table, "\tcores\tmemory\trefused\tfailed\tsettled\tdrained\tthe noisy one")
	judged := tally{}
	for _, result := range results {
		cells := append(result.figures(results[0], &judged), result.others(&judged)...)
		fmt.Fprintln(table, result.Attack+"\t"+strings.Join(cells, "\t"))
	}
	fmt.Fprintln(table, "all attacks\t"+strings.Join(together(results).figures(results[0], &tally{}), "\t"))
	if err := table.Flush(); err != nil {
		return judged[misses], err
	}
	explain(out, results)
	fmt.Fprintf(out, "\nGoals: each p99 under twice the one alone or under %s; no post refused, nothing failed; at most %d MB;\n"+
		"settled, then drained, within %s; the noisy one refused at least once, unless it is within its limits.\n"+
		"%d hold, %d are undecided (?), missed: %d (!). Sign-ins are too few to decide beside one attack; all attacks together decide.\n",
		goalView, goalMemory>>20, settleTimeout, judged[holds], judged[undecided], judged[misses])
	return judged[misses], nil
}

// A tally counts verdicts.
type tally [misses + 1]int

// together returns what was noticed beside all attacks.
func together(results []Result) Result {
	all := Result{Took: &[views]measure.Samples{}}
	for _, result := range results {
		for view := range result.Took {
			if result.Answers != nil {
				all.Took[view].AddAll(&result.Took[view])
			}
		}
	}
	return all
}

// goal returns how long a view may take at the 99th percentile, given
// its time without any attack.
func goal(alone time.Duration) time.Duration { return max(goalView, goalFactor*alone) }

// figures returns the columns of the quiet organizations' views.
func (r Result) figures(alone Result, judged *tally) []string {
	cells := []string{fmt.Sprint(r.Took[Answer].Count())}
	for view := range r.Took {
		took := &r.Took[view]
		v := judge(took, goal(alone.Took[view].Percentiles(99)[0]))
		judged[v]++
		cells = append(cells, figure(took)+v.mark())
	}
	return cells
}

// others returns the other columns.
func (r Result) others(judged *tally) (cells []string) {
	cell := func(text string, met bool) {
		v := misses
		if met {
			v = holds
		}
		judged[v]++
		cells = append(cells, text+v.mark())
	}
	cells = append(cells, r.Cores.String())
	cell(fmt.Sprintf("%d MB", r.Peak>>20), r.Peak <= goalMemory)
	cell(fmt.Sprint(r.Refused), r.Refused == 0)
	cell(fmt.Sprint(len(r.Failed)), len(r.Failed) == 0)
	cell(r.Settled.Round(100*time.Millisecond).String(), r.Settled < settleTimeout)
	cell(r.Drained.Round(100*time.Millisecond).String(), r.Drained < settleTimeout)
	if r.Answers == nil {
		return append(cells, "-")
	}
	text := r.Answers.String()
	if r.Lawful && !r.Answers.Refused() {
		text += " (within its limits)"
	}
	cell(text, r.Lawful || r.Answers.Refused())
	return cells
}

// explain describes the attacks, and the first failure beside each.
func explain(out io.Writer, results []Result) {
	fmt.Fprintln(out)
	for _, result := range results {
		fmt.Fprintf(out, "%s: %s\n", result.Attack, result.Description)
		if len(result.Failed) > 0 {
			fmt.Fprintf(out, "  %d failures of quiet organizations, the first: %v\n", len(result.Failed), result.Failed[0])
		}
	}
}
