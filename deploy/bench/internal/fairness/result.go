package fairness

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/weirlog/weir/deploy/bench/internal/subject"
	"github.com/weirlog/weir/shared/measure"
)

// What a quiet organization may notice of a noisy one, and the
// process's memory meanwhile.
const (
	goalFactor = 2                      // times its p99 alone, or
	goalView   = 250 * time.Millisecond // p99, whichever is more
	goalMemory = 512 << 20              // bytes resident
)

// What a quiet tenant waits for. From balance to search they are the views
// of a watched tenant.
const (
	handshake = iota                    // a new TLS connection
	answer                              // to a post
	balance                             // of the ledger
	search    = balance + subject.Views // for a word of its entries
	signIn    = search + 1              // by a member known from the same device
	views     = signIn + 1              // how many there are
)

var viewNames = [views]string{"handshake", "answer", "balance", "group", "read-back", "search", "sign-in"}

// errRefused is a post of a quiet organization that was not accepted.
var errRefused = errors.New("a post was refused")

// A result is what quiet organizations noticed of one attack.
type result struct {
	attack  attack
	took    [views]measure.Samples
	mu      sync.Mutex      // of refused and failed
	refused int64           // posts
	failed  []error         // of them and of looks
	peak    int64           // most bytes resident of the measured process meanwhile
	cores   []time.Duration // each process's CPU time of a second: an attack costs its own process some, and they share a machine
	answers *outcome        // of the noisy tenant; nil without one
	settled time.Duration   // after the attack, until the views of a post were within their goal again
	drained time.Duration   // then, until the noisy tenant's own views showed what it had sent
}

// fail notes what a quiet organization was refused, or did not see.
func (r *result) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = append(r.failed, err)
	if errors.Is(err, errRefused) {
		r.refused++
	}
}

// within reports whether all samples are within the goals.
func (r *result) within(alone *result) bool {
	for view := range r.took {
		if r.took[view].Percentiles(100)[0] > alone.goal(view) {
			return false
		}
	}
	return true
}

// goal returns how long a view may take at the 99th percentile, given its
// time without any attack.
func (r *result) goal(view int) time.Duration {
	return max(goalView, goalFactor*r.took[view].Percentiles(99)[0])
}

// write prints a line for each attack and one for all together. An
// exclamation mark means a missed goal, a question mark one that too
// few samples leave open.
func write(out io.Writer, c *Command, results []*result) (missed int, err error) {
	table := measure.NewTable(out, fmt.Sprintf("%d quiet organizations, watched for %s beside each attack; the cores that Weir, PostgreSQL,\n"+
		"the attack and the watch keep busy are shared by them. p50 / p99 in ms, and in brackets where p99 lies, each end certain to 95 %%.", quiet, c.Each))
	table.Row("beside", "posts", strings.Join(viewNames[:], "\t"), "cores", "memory", "refused", "failed", "settled", "drained", "the noisy one")
	var judged verdicts
	all := &result{}
	for _, r := range results {
		table.Row(append(append([]string{r.attack.Name}, r.figures(results[0], &judged)...), r.others(&judged)...)...)
		for view := range views {
			if r.answers != nil {
				all.took[view].AddAll(&r.took[view])
			}
		}
	}
	table.Row(append([]string{"all attacks"}, all.figures(results[0], &verdicts{})...)...)
	if err := table.Flush(); err != nil {
		return judged[misses], err
	}
	fmt.Fprintln(out)
	for _, r := range results {
		fmt.Fprintf(out, "%s: %s\n", r.attack.Name, r.attack.Does)
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

// A verdict is what is known of a goal after so many samples: it holds, or
// is missed, if the whole interval is on one side of it.
type verdict int

const (
	undecided verdict = iota
	holds
	misses
)

// verdicts counts them.
type verdicts [misses + 1]int

// mark counts a verdict and returns its sign beside a figure.
func (all *verdicts) mark(v verdict) string {
	all[v]++
	return [...]string{"?", "", "!"}[v]
}

// figures returns the columns of the quiet organizations' views.
func (r *result) figures(alone *result, judged *verdicts) []string {
	cells := []string{fmt.Sprint(r.took[answer].Count())}
	for view := range r.took {
		v := undecided
		switch low, high := r.took[view].Interval(99); {
		case high <= alone.goal(view):
			v = holds
		case low > alone.goal(view):
			v = misses
		}
		cells = append(cells, figure(&r.took[view])+judged.mark(v))
	}
	return cells
}

// others returns the other columns.
func (r *result) others(judged *verdicts) (cells []string) {
	cell := func(text string, met bool) {
		v := misses
		if met {
			v = holds
		}
		cells = append(cells, text+judged.mark(v))
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
	if r.attack.Lawful && !r.answers.refused() {
		text += " (within its limits)"
	}
	cell(text, r.attack.Lawful || r.answers.refused())
	return cells
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
