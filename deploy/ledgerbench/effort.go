package ledgerbench

import (
	"fmt"
	"os"
	"time"

	"github.com/weirlog/weir/deploy/measure"
)

// An effort is the processor time of something.
type effort struct {
	own      time.Duration // of this process: the ledger and the embedded broker
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
	return fmt.Sprintf("%.1f / %.1f µs", inMicros(e.database), inMicros(e.own))
}

func inMicros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
