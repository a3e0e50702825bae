package lanes

import (
	"slices"
	"time"

	"github.com/weirlog/weir/shared/bus/internal/clock"
)

// Turns is the order in which lanes with backlogs get transactions.
type Turns struct {
	lanes  []string               // each once
	limits map[string]*BatchLimit // bounded by Lanes.Most
	failed map[Key]failure        // whose last turn came to nothing; bounded by Lanes.Most
}

// NewTurns is the order of no lanes.
func NewTurns() *Turns {
	return &Turns{limits: make(map[string]*BatchLimit), failed: make(map[Key]failure)}
}

// failure is how often in a row a lane's turns in one partition
// failed, and until when it gets none: a fault there delays its
// other partitions by one turn at most.
type failure struct {
	count int
	until time.Time
}

// Fail notes that a turn came to nothing.
func (t *Turns) Fail(at Key) {
	n := t.failed[at].count + 1
	t.failed[at] = failure{n, clock.Now().Add(clock.Backoff(n, 20*time.Millisecond, 2*time.Second))}
}

// Succeed notes that one did not, or that none is needed.
func (t *Turns) Succeed(at Key) { delete(t.failed, at) }

// Pausing reports whether a place failed a moment ago.
func (t *Turns) Pausing(at Key) bool { return clock.Now().Before(t.failed[at].until) }

// MaxRest is the longest rest between turns while all that is
// left to read has failed.
const MaxRest = 200 * time.Millisecond

// Rest is how long nothing can be read.
func (t *Turns) Rest() time.Duration {
	shortest := MaxRest
	for at, f := range t.failed {
		if t.Pausing(at) {
			shortest = min(shortest, f.until.Sub(clock.Now()))
		}
	}
	return shortest
}

// Add puts a lane last, unless it is there.
func (t *Turns) Add(lane string) {
	if t.limits[lane] == nil {
		t.limits[lane] = &BatchLimit{firstScale}
		t.lanes = append(t.lanes, lane)
	}
}

// Has reports whether a lane is behind anywhere.
func (t *Turns) Has(lane string) bool { return t.limits[lane] != nil }

// Empty reports whether no lane is.
func (t *Turns) Empty() bool { return len(t.lanes) == 0 }

// Limit is that of a lane's transactions; nil where it has no turn.
func (t *Turns) Limit(lane string) *BatchLimit { return t.limits[lane] }

// readiness is what a lane has left to be read.
type readiness int

const (
	nothing readiness = iota
	later             // all of it has failed a moment ago
	ready
)

// take returns the next ready lane, and puts it last. Lanes that
// need no turn leave the order.
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

// NextRead is what to read next, and of it at most a part of most: the
// oldest backlog of the lane whose turn it is.
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
