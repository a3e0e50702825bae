package ledgerbench

import (
	"fmt"
	"io"
	"runtime"
	"text/tabwriter"
	"time"
)

// Write prints what was measured, and beside it the goals. Ratios are of this run alone.
func (r Result) Write(out io.Writer) error {
	fmt.Fprintf(out, "\n%d cores, %s/%s, %s. Records of weir.logs.v1, each a request; the ledger, PostgreSQL, broker and load share the machine.\n\n",
		runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(what, value, goal string) { fmt.Fprintf(table, "%s\t%s\t%s\n", what, value, goal) }
	line("COPY alone, two connections", r.Copy.String(), "")
	line("1,000 organizations with three projects", r.Spread.String(),
		goal(r.Spread, 0.7*r.Copy, fmt.Sprintf("%.2f of COPY, goal 0.70, the least 0.50", r.Spread/r.Copy)))
	line("one organization", r.Hot.String(), goal(r.Hot, r.Spread, fmt.Sprintf("%.2f of 1,000 organizations, goal 1.00", r.Hot/r.Spread)))
	line("1,000 organizations, two replicas", r.Two.String(), goal(r.Two, r.Spread, fmt.Sprintf("%.2f of one replica, goal above 1.00", r.Two/r.Spread)))
	line("a transaction for each record", r.Single.String(), fmt.Sprintf("%.0f times slower", r.Spread/r.Single))
	line("checking what was applied", fmt.Sprintf("%.1f %%", 100*r.Checks), atMost(r.Checks, 0.05, "of the time of applying it, goal 5 %"))
	line(fmt.Sprintf("lag at %.0f/s, p50 / p99", r.LagRate), r.Lag.String(), within(r.Lag, time.Second))
	line("balance meanwhile, p50 / p99", r.Balance.String(), within(r.Balance, 5*time.Millisecond))
	line("usage over a year, p50 / p99", r.Usage.String(), within(r.Usage, 100*time.Millisecond))
	line(fmt.Sprintf("rebuild of %d records", r.Rebuilt), r.Rebuild.Round(10*time.Millisecond).String(), r.rebuildGoal())
	return table.Flush()
}

func (r rate) String() string { return fmt.Sprintf("%.0f/s", float64(r)) }

func (p percentiles) String() string {
	return fmt.Sprintf("%.1f / %.1f ms", float64(p[0].Microseconds())/1000, float64(p[1].Microseconds())/1000)
}

func goal(value, least rate, text string) string {
	if value >= least {
		return "met: " + text
	}
	return "MISSED: " + text
}

func atMost(value, most float64, text string) string {
	if value <= most {
		return "met: " + text
	}
	return "MISSED: " + text
}

func within(p percentiles, most time.Duration) string {
	text := fmt.Sprintf("p99 within %s", most)
	if p[1] <= most {
		return "met: " + text
	}
	return "MISSED: " + text
}

// rebuildGoal holds for a million records, and in proportion.
func (r Result) rebuildGoal() string {
	most := time.Duration(r.Rebuilt) * 10 * time.Microsecond
	text := fmt.Sprintf("within %s", most)
	if r.Rebuild <= most {
		return "met: " + text
	}
	return "MISSED: " + text
}
