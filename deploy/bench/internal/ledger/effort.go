package ledger

import (
	"fmt"
	"os"
	"time"

	"github.com/weirlog/weir/deploy/bench/internal/measure"
)

// An effort is the processor time of something.
type effort struct {
	own      time.Duration // of this process: the ledger, the embedded broker, and the measurement
	database time.Duration // of PostgreSQL; 0: it runs elsewhere
}

// effort returns the effort so far. Unlike elapsed time, it hardly
// depends on other load of the machine.
func (w *world) effort() effort {
	e := effort{own: measure.UsageOf(os.Getpid()).CPU}
	if w.postmaster != 0 {
		e.database = measure.FamilyUsage(w.postmaster).CPU
	}
	return e
}

func (e effort) total() time.Duration { return e.own + e.database }

func (e effort) less(before effort) effort {
	return effort{e.own - before.own, e.database - before.database}
}

// perRecord returns the effort for one of n records.
func (e effort) perRecord(n int) effort {
	return effort{e.own / time.Duration(n), e.database / time.Duration(n)}
}

func (e effort) String() string {
	if e.database == 0 {
		return fmt.Sprintf("– / %.1f µs", inMicros(e.own))
	}
	return fmt.Sprintf("%.1f / %.1f µs", inMicros(e.database), inMicros(e.own))
}

func inMicros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// A share is one effort relative to another.
type share struct {
	of       float64
	measured bool
	whole    bool // PostgreSQL's part is included
}

// shareOf compares e with another effort.
func (w *world) shareOf(e, other effort) share {
	return share{e.total().Seconds() / other.total().Seconds(), true, w.postmaster != 0}
}

func (s share) String() string {
	if !s.whole {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100*s.of)
}

// goal judges a share, unless a part of it is unknown.
func (s share) goal(most float64, text string) string {
	if !s.whole {
		return ""
	}
	return verdict(s.of <= most, text)
}
