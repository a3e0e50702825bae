package status

import (
	"maps"
	"sync"
	"time"

	"github.com/weirlog/weir/shared/bus/consumer/internal/lanes"
	"github.com/weirlog/weir/shared/bus/internal/broker"
	"github.com/weirlog/weir/shared/bus/internal/clock"
)

// end is how far a partition was applied when it was claimed and is now,
// the last known end of its log, and when all of it was last fetched.
type end struct {
	claimed, next, log int64
	fetched            time.Time
}

// Reach is how far assigned partitions are applied, and where their
// logs end. Safe for concurrent use.
type Reach struct {
	mu         sync.Mutex
	partitions map[int]end
	since      time.Time // the claim of the partitions; zero: there are none
	caughtUp   bool      // with the ends that they had then
}

func newReach() *Reach { return &Reach{partitions: make(map[int]end)} }

func (r *Reach) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.partitions, r.since = make(map[int]end), time.Time{}
}

// claim notes that the partitions are claimed.
func (r *Reach) claim() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.since, r.caughtUp = clock.Now(), false
}

// CatchUp notes that they have reached the ends that they had then.
func (r *Reach) CatchUp() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.caughtUp = true
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
	r.change(partition, func(e *end) { *e = end{claimed: next, next: next, log: max(next, until)} })
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

// A Backlog is what was in the log when a consumer got its partitions,
// and is not applied yet.
type Backlog struct {
	Records int64         // left, in offsets, with those that have come since; 0 until the brokers have said it
	Done    float64       // applied of all, 0 to 1
	Left    time.Duration // for the rest at the pace so far; 0: not known
}

// Backlog returns it until the partitions have reached the ends that they
// had when they were claimed. They lag so much.
func (r *Reach) Backlog(lag map[int]int64) (b Backlog, exists bool) {
	for _, n := range lag {
		b.Records += n
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.since.IsZero() || r.caughtUp {
		return Backlog{}, false
	}
	applied := 0.0
	for _, e := range r.partitions {
		applied += float64(e.next - e.claimed)
	}
	if rest := float64(b.Records); applied > 0 {
		b.Done = applied / (applied + rest)
		b.Left = time.Duration(rest / applied * float64(clock.Now().Sub(r.since)))
	}
	return b, true
}

// Goals are the ends that partitions had when they were assigned. The
// consumer is ready once all is applied up to them, lanes included.
type Goals struct {
	ends map[int]int64 // of partitions that have not reached them; unknown: not fetched yet
	read map[int]int64 // how far partitions are read
}

const unknown = -1

// NewGoals returns no goals.
func NewGoals() Goals { return Goals{ends: make(map[int]int64), read: make(map[int]int64)} }

// Add adds a partition.
func (g Goals) Add(partition int) { g.ends[partition] = unknown }

// Open reports whether a partition has not reached its goal.
func (g Goals) Open() bool { return len(g.ends) > 0 }

// Seen notes where the log of a partition ends.
func (g Goals) Seen(partition int, end int64) {
	if goal, open := g.ends[partition]; open && goal == unknown {
		g.ends[partition] = end
	}
}

// Reached notes how far partitions are read.
func (g Goals) Reached(until map[int]int64) {
	if !g.Open() {
		return
	}
	for p, next := range until {
		g.read[p] = max(g.read[p], next)
	}
}

// Met removes reached goals, and reports whether none is left.
func (g Goals) Met(behind lanes.Backlogs) bool {
	applied := maps.Clone(g.read)
	behind.Lower(applied)
	for p, goal := range g.ends {
		if next, read := applied[p]; read && goal != unknown && next >= goal {
			delete(g.ends, p)
		}
	}
	return !g.Open()
}
