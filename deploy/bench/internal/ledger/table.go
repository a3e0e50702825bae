package ledger

import (
	"fmt"
	"io"
	"runtime"
	"text/tabwriter"
	"time"
)

// Write prints the results beside their goals. Ratios are of this run.
func (r Result) Write(out io.Writer) error {
	fmt.Fprintf(out, "\n%d cores, %s/%s, %s. Records of weir.logs.v1, each a request; the ledger, PostgreSQL, broker and load share the machine.\n\n",
		runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(measured bool, what, value, goal string) {
		if measured {
			fmt.Fprintf(table, "%s\t%s\t%s\n", what, value, goal)
		}
	}
	line(r.Copy > 0, "COPY alone, two connections", r.Copy.String(), "")
	line(r.Spread > 0, "1,000 organizations with three projects", r.Spread.String(), r.spreadGoal())
	line(r.Spread > 0, "processor time of a record, PostgreSQL / this process: ledger, broker, bench", r.Effort.String(), "")
	for kind, took := range r.Statements {
		line(true, "  of it in PostgreSQL: "+statementKinds[kind].name, fmt.Sprintf("%.2f µs", inMicros(took)), "")
	}
	line(r.Hot > 0, "one organization", r.Hot.String(), r.besideSpread(r.Hot, "of 1,000 organizations, goal 1.00"))
	line(r.Two > 0, "1,000 organizations, two replicas", r.Two.String(), r.besideSpread(r.Two, "of one replica, goal above 1.00"))
	line(r.Single > 0, "a transaction for each record", r.Single.String(), r.timesSlower())
	line(r.Checks.measured, "checking what was applied", r.Checks.String(), r.Checks.goal(0.05, "of the processor time of applying it, goal 5 %"))
	line(r.CheckLag.Max > 0, "checks behind at full rate: at most / at its end", r.CheckLag.String(), r.CheckLag.goal())
	line(r.LagRate > 0, fmt.Sprintf("lag at %.0f/s, p50 / p99", r.LagRate), r.Lag.String(), within(r.Lag, time.Second))
	line(r.LagRate > 0, "balance meanwhile, p50 / p99", r.Balance.String(), within(r.Balance, 5*time.Millisecond))
	line(r.LagRate > 0, "balance before, with nothing booked beside it, p50 / p99", r.BalanceAlone.String(), "")
	line(r.Usage[0] > 0, "usage over a year, p50 / p99", r.Usage.String(), within(r.Usage, 100*time.Millisecond))
	line(r.Rebuilt > 0, fmt.Sprintf("rebuild of %d records", r.Rebuilt), r.Rebuild.Round(10*time.Millisecond).String(), r.rebuildGoal())
	return table.Flush()
}

func (r rate) String() string { return fmt.Sprintf("%.0f/s", float64(r)) }

func (p percentiles) String() string {
	return fmt.Sprintf("%.1f / %.1f ms", float64(p[0].Microseconds())/1000, float64(p[1].Microseconds())/1000)
}

func (c CheckLag) String() string {
	return fmt.Sprintf("%.1f / %.1f s", c.Max.Seconds(), c.End.Seconds())
}

func (c CheckLag) goal() string {
	text := fmt.Sprintf("within %s, of which %s are between two rounds", maxCheckLag, checkEvery)
	return verdict(max(c.Max, c.End) <= maxCheckLag, text)
}

// Shares of COPY: the goal, and the least that counts as fast.
const (
	goalOfCopy   = 0.7
	minCopyShare = 0.5
)

func (r Result) spreadGoal() string {
	if r.Copy == 0 {
		return ""
	}
	share := float64(r.Spread / r.Copy)
	text := fmt.Sprintf("%.2f of COPY, goal %.2f, the least %.2f", share, goalOfCopy, minCopyShare)
	if minCopyShare <= share && share < goalOfCopy {
		return "least met: " + text
	}
	return verdict(share >= goalOfCopy, text)
}

// besideSpread compares a rate with that of 1,000 organizations and one replica.
func (r Result) besideSpread(of rate, text string) string {
	if r.Spread == 0 {
		return ""
	}
	return verdict(of >= r.Spread, fmt.Sprintf("%.2f %s", of/r.Spread, text))
}

func (r Result) timesSlower() string {
	if r.Spread == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f times slower", r.Spread/r.Single)
}

func verdict(met bool, text string) string {
	if met {
		return "met: " + text
	}
	return "MISSED: " + text
}

func within(p percentiles, most time.Duration) string {
	return verdict(p[1] <= most, fmt.Sprintf("p99 within %s", most))
}

// rebuildGoal holds for a million records, and in proportion.
func (r Result) rebuildGoal() string {
	most := time.Duration(r.Rebuilt) * 10 * time.Microsecond
	return verdict(r.Rebuild <= most, fmt.Sprintf("within %s", most))
}
