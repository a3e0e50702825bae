package lanes

import (
	"slices"
	"time"

	"github.com/weirlog/weir/shared/bus/internal/clock"
)

// Turns orders the transactions of lanes with backlogs.
type Turns struct {
	lanes  []string               // each once
	limits map[string]*BatchLimit // bounded by Lanes.MaxPositions
	failed map[Key]failure        // whose last turn failed; bounded by Lanes.MaxPositions
}

// NewTurns returns turns without lanes.
func NewTurns() *Turns {
	return &Turns{limits: make(map[string]*BatchLimit), failed: make(map[Key]failure)}
}

// failure counts a lane's failed turns in a row in one partition, and
// pauses them: a fault there delays the lane's other partitions by one
// turn at most.
type failure struct {
	count int
	until time.Time
}

// Fail notes that a turn failed.
func (t *Turns) Fail(at Key) {
	n := t.failed[at].count + 1
	t.failed[at] = failure{n, clock.Now().Add(clock.Backoff(n, 20*time.Millisecond, 2*time.Second))}
}

// Succeed notes that a turn succeeded, or that none is needed.
func (t *Turns) Succeed(at Key) { delete(t.failed, at) }

// Pausing reports whether a lane's turn in a partition has just failed.
func (t *Turns) Pausing(at Key) bool { return clock.Now().Before(t.failed[at].until) }

// MaxRest is the longest rest between turns while every lane with
// records has just failed.
const MaxRest = 200 * time.Millisecond

// Rest returns how long nothing can be read.
func (t *Turns) Rest() time.Duration {
	shortest := MaxRest
	for at, f := range t.failed {
		if t.Pausing(at) {
			shortest = min(shortest, f.until.Sub(clock.Now()))
		}
	}
	return shortest
}

// Add puts a new lane last.
func (t *Turns) Add(lane string) {
	if t.limits[lane] == nil {
		t.limits[lane] = &BatchLimit{firstScale}
		t.lanes = append(t.lanes, lane)
	}
}

// Has reports whether a lane has a backlog.
func (t *Turns) Has(lane string) bool { return t.limits[lane] != nil }

// Empty reports whether no lane has.
func (t *Turns) Empty() bool { return len(t.lanes) == 0 }

// Limit returns the limit of a lane's transactions; nil without a turn.
func (t *Turns) Limit(lane string) *BatchLimit { return t.limits[lane] }

// readiness is whether a lane has records to read.
type readiness int

const (
	nothing readiness = iota
	later             // all have just failed
	ready
)

// take returns the next ready lane, and puts it last. Lanes without
// records leave the order.
func (t *Turns) take(wants func(lane string) readiness) (string, bool) {
	for range len(t.lanes) {
		lane := t.lanes[0]
		t.lanes = t.lanes[1:]
		w := wants(lane)
		if w == nothing {
			delete(t.limits, lane)
			continue
		}
		t.lanes = append(t.lanes, lane)
		if w == ready {
			return lane, true
		}
	}
	return "", false
}

// NextRead returns what to read next, at most a part of most: from the
// oldest backlog of the next lane.
func (t *Turns) NextRead(all Backlogs, served *Batch, most Amount) (Request, bool) {
	var oldest Backlog
	lane, ok := t.take(func(lane string) (w readiness) {
		oldest, w = all.oldest(lane, served, t.Pausing)
		return w
	})
	if !ok {
		return Request{}, false
	}
	return Request{Key: oldest.Key, Next: oldest.Next, Last: oldest.Last, spans: slices.Clone(oldest.Spans), Limit: t.limits[lane].Limit(most)}, true
}
