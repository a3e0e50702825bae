package ledgerbench

import (
	"fmt"
	"os"
	"time"

	"github.com/weirlog/weir/deploy/measure"
)

// An effort is the processor time of something.
type effort struct {
	own      time.Duration // of this process: the ledger, the embedded broker, and what measures
	database time.Duration // of PostgreSQL; 0 where it runs elsewhere
}

// effort is what was spent so far. What else the machine does
// lengthens it little, unlike the time that passes.
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

// perRecord is the effort of one of n records.
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

// A share is what one effort is of another.
type share struct {
	of       float64
	measured bool
	whole    bool // with PostgreSQL's part
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

// goal judges a share, unless a part of it is not known.
func (s share) goal(most float64, text string) string {
	if !s.whole {
		return ""
	}
	return verdict(s.of <= most, text)
}
