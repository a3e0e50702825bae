package fairness

import (
	"fmt"
	"time"

	"github.com/weirlog/weir/deploy/bench/internal/measure"
)

// A verdict is what is known of a goal after so many samples.
type verdict int

// The verdicts: a goal holds, or is missed, if the whole interval is on
// one side of it.
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
	p := took.Percentiles(50, 99)
	low, high := took.Interval(99)
	end := ""
	if high != measure.Unbounded {
		end = fmt.Sprintf("%.0f", milliseconds(high))
	}
	return fmt.Sprintf("%.1f/%.0f [%.0f-%s]", milliseconds(p[0]), milliseconds(p[1]), milliseconds(low), end)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
