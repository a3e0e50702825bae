package consumer

import (
	"slices"
	"time"

	"github.com/weirlog/weir/shared/bus/internal/clock"
)

// turns is the order in which lanes with backlogs get transactions.
type turns struct {
	lanes  []string               // each once
	limits map[string]*batchLimit // bounded by Lanes.Most
	failed map[laneKey]failure    // whose last turn came to nothing; bounded by Lanes.Most
}

func newTurns() *turns {
	return &turns{limits: make(map[string]*batchLimit), failed: make(map[laneKey]failure)}
}

// failure is how often in a row a lane's turns in one partition
// failed, and until when it gets none: a fault there delays its
// other partitions by one turn at most.
type failure struct {
	count int
	until time.Time
}

func (t *turns) fail(at laneKey) {
	n := t.failed[at].count + 1
	t.failed[at] = failure{n, clock.Now().Add(clock.Backoff(n, 20*time.Millisecond, 2*time.Second))}
}

func (t *turns) succeed(at laneKey) { delete(t.failed, at) }

// pausing reports whether a place failed a moment ago.
func (t *turns) pausing(at laneKey) bool { return clock.Now().Before(t.failed[at].until) }

// maxRest is the longest rest between turns while all that is
// left to read has failed.
const maxRest = 200 * time.Millisecond

// rest is how long nothing can be read.
func (t *turns) rest() time.Duration {
	shortest := maxRest
	for at, f := range t.failed {
		if t.pausing(at) {
			shortest = min(shortest, f.until.Sub(clock.Now()))
		}
	}
	return shortest
}

// add puts a lane last, unless it is there.
func (t *turns) add(lane string) {
	if t.limits[lane] == nil {
		t.limits[lane] = &batchLimit{firstScale}
		t.lanes = append(t.lanes, lane)
	}
}

// has reports whether a lane is behind anywhere.
func (t *turns) has(lane string) bool { return t.limits[lane] != nil }

// empty reports whether no lane is.
func (t *turns) empty() bool { return len(t.lanes) == 0 }

// limit is that of a lane's transactions; nil where it has no turn.
func (t *turns) limit(lane string) *batchLimit { return t.limits[lane] }

// readiness is what a lane has left to be read.
type readiness int

const (
	nothing readiness = iota
	later             // all of it has failed a moment ago
	ready
)

// take returns the next ready lane, and puts it last. Lanes that
// need no turn leave the order.
func (t *turns) take(wants func(lane string) readiness) (string, bool) {
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

// nextRead is what to read next, and of it at most a part of most: the
// oldest backlog of the lane whose turn it is.
func (t *turns) nextRead(all backlogs, served *laneBatch, most amount) (laneRead, bool) {
	var oldest backlog
	lane, ok := t.take(func(lane string) (w readiness) {
		oldest, w = all.oldest(lane, served, t.pausing)
		return w
	})
	if !ok {
		return laneRead{}, false
	}
	return laneRead{laneKey: oldest.laneKey, next: oldest.next, last: oldest.last, spans: slices.Clone(oldest.spans), limit: t.limits[lane].limit(most)}, true
}
