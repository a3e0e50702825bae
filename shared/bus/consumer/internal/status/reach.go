package status

import (
	"sync"
	"time"

	"github.com/weirlog/weir/shared/bus/internal/broker"
	"github.com/weirlog/weir/shared/bus/internal/clock"
)

// end is how far a partition is applied, the last known end of its log,
// and when all of it was last fetched.
type end struct {
	next, log int64
	fetched   time.Time
}

// Reach is how far assigned partitions are applied, and where their
// logs end. Safe for concurrent use.
type Reach struct {
	mu         sync.Mutex
	partitions map[int]end
}

func newReach() *Reach { return &Reach{partitions: make(map[int]end)} }

func (r *Reach) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.partitions = make(map[int]end)
}

// change changes a partition's end.
func (r *Reach) change(partition int, by func(e *end)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.partitions[partition]
	by(&e)
	r.partitions[partition] = e
}

// Begin notes a claimed partition's next offset. Without a leader its
// log is assumed to end there.
func (r *Reach) Begin(partition int, next, until int64) {
	r.change(partition, func(e *end) { *e = end{next: next, log: max(next, until)} })
}

// See notes where the log ended when records of it were fetched.
func (r *Reach) See(partition int, until int64) {
	r.change(partition, func(e *end) { e.log = max(e.log, until) })
}

// Fetched notes that a whole partition is fetched.
func (r *Reach) Fetched(partition int) {
	r.change(partition, func(e *end) { e.fetched = clock.Now() })
}

// Ends notes where logs end.
func (r *Reach) Ends(logs map[int]broker.LogBounds) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for p, log := range logs {
		e := r.partitions[p]
		e.log = log.End
		r.partitions[p] = e
	}
}

// Applied notes how far partitions are applied; it never goes back.
func (r *Reach) Applied(until map[int]int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for p, next := range until {
		e := r.partitions[p]
		e.next = max(e.next, next)
		r.partitions[p] = e
	}
}

// Lagging returns the assigned partitions that are or may be behind:
// not fetched to their end for so long.
func (r *Reach) Lagging(since time.Duration) (partitions []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for p, e := range r.partitions {
		if e.next < e.log || clock.Now().Sub(e.fetched) > since {
			partitions = append(partitions, p)
		}
	}
	return partitions
}

// lag returns each partition's distance from the end of its log, in offsets.
func (r *Reach) lag() map[int]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	lag := make(map[int]int64, len(r.partitions))
	for p, e := range r.partitions {
		lag[p] = max(0, e.log-e.next)
	}
	return lag
}
