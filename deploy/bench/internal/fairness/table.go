package fairness

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/weirlog/weir/shared/testenv/measure"
)

// What a quiet organization may notice of a noisy one, and the
// process's memory meanwhile.
const (
	goalFactor = 2                      // times its p99 alone, or
	goalView   = 250 * time.Millisecond // p99, whichever is more
	goalMemory = 512 << 20              // bytes resident
)

// write prints a line for each attack and one for all together. An
// exclamation mark means a missed goal, a question mark one that too
// few samples leave open.
func write(out io.Writer, c *Command, results []result) (missed int, err error) {
	table := measure.NewTable(out, fmt.Sprintf("%d quiet organizations, watched for %s beside each attack; the cores that Weir, PostgreSQL,\n"+
		"the attack and the watch keep busy are shared by them. p50 / p99 in ms, and in brackets where p99 lies, each end certain to 95 %%.", c.Quiet, c.Each))
	table.Row("beside", "posts", strings.Join(viewNames[:], "\t"), "cores", "memory", "refused", "failed", "settled", "drained", "the noisy one")
	var judged tally
	all := result{took: &[views]measure.Samples{}}
	for _, r := range results {
		table.Row(append(append([]string{r.attack.name}, r.figures(results[0], &judged)...), r.others(&judged)...)...)
		for view := range views {
			if r.answers != nil {
				all.took[view].AddAll(&r.took[view])
			}
		}
	}
	table.Row(append([]string{"all attacks"}, all.figures(results[0], &tally{})...)...)
	if err := table.Flush(); err != nil {
		return judged[misses], err
	}
	fmt.Fprintln(out)
	for _, r := range results {
		fmt.Fprintf(out, "%s: %s\n", r.attack.name, r.attack.description)
		if len(r.failed) > 0 {
			fmt.Fprintf(out, "  %d failures of quiet organizations, the first: %v\n", len(r.failed), r.failed[0])
		}
	}
	fmt.Fprintf(out, "\nGoals: each p99 under twice the one alone or under %s; no post refused, nothing failed; at most %d MB;\n"+
		"settled, then drained, within %s; the noisy one refused at least once, unless it is within its limits.\n"+
		"%d hold, %d are undecided (?), missed: %d (!). Sign-ins are too few to decide beside one attack; all attacks together decide.\n",
		goalView, goalMemory>>20, settleTimeout, judged[holds], judged[undecided], judged[misses])
	return judged[misses], nil
}

// A tally counts verdicts.
type tally [misses + 1]int

// goal returns how long a view may take at the 99th percentile, given
// its time without any attack.
func goal(alone time.Duration) time.Duration { return max(goalView, goalFactor*alone) }

// figures returns the columns of the quiet organizations' views.
func (r result) figures(alone result, judged *tally) []string {
	cells := []string{fmt.Sprint(r.took[answer].Count())}
	for view := range r.took {
		v := judge(&r.took[view], goal(alone.took[view].Percentiles(99)[0]))
		judged[v]++
		cells = append(cells, figure(&r.took[view])+v.mark())
	}
	return cells
}

// others returns the other columns.
func (r result) others(judged *tally) (cells []string) {
	cell := func(text string, met bool) {
		v := misses
		if met {
			v = holds
		}
		judged[v]++
		cells = append(cells, text+v.mark())
	}
	cores := make([]string, len(r.cores))
	for i, d := range r.cores {
		cores[i] = fmt.Sprintf("%.2f", d.Seconds())
	}
	cells = append(cells, strings.Join(cores, "/"))
	cell(fmt.Sprintf("%d MB", r.peak>>20), r.peak <= goalMemory)
	cell(fmt.Sprint(r.refused), r.refused == 0)
	cell(fmt.Sprint(len(r.failed)), len(r.failed) == 0)
	cell(r.settled.Round(100*time.Millisecond).String(), r.settled < settleTimeout)
	cell(r.drained.Round(100*time.Millisecond).String(), r.drained < settleTimeout)
	if r.answers == nil {
		return append(cells, "-")
	}
	text := r.answers.String()
	if r.attack.lawful && !r.answers.refused() {
		text += " (within its limits)"
	}
	cell(text, r.attack.lawful || r.answers.refused())
	return cells
}

// A verdict is what is known of a goal after so many samples: it holds, or
// is missed, if the whole interval is on one side of it.
type verdict int

const (
	undecided verdict = iota
	holds
	misses
)

// mark returns a verdict's sign beside a figure.
func (v verdict) mark() string { return [...]string{"?", "", "!"}[v] }

// judge compares the 99th percentile with a goal.
func judge(took *measure.Samples, goal time.Duration) verdict {
	switch low, high := took.Interval(99); {
	case high <= goal:
		return holds
	case low > goal:
		return misses
	}
	return undecided
}

// figure shows p50, p99 and the interval of p99, in milliseconds.
func figure(took *measure.Samples) string {
	millis := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	p := took.Percentiles(50, 99)
	low, high := took.Interval(99)
	end := ""
	if high != measure.Unbounded {
		end = fmt.Sprintf("%.0f", millis(high))
	}
	return fmt.Sprintf("%.1f/%.0f [%.0f-%s]", millis(p[0]), millis(p[1]), millis(low), end)
}
