package lanes

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weirlog/weir/shared/bus"
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

// A Config divides a consumer's work, so that no tenant waits for
// another's records. While a consumer is late, a lane over its share of
// a transaction is deferred: it gets its own position in the table
// bus_deferred, and continues from there in turn with other such lanes.
// The consumer continues with the rest of the log. Records of one lane
// in one partition keep their order.
type Config struct {
	// Of returns the lane of a record, at most 255 bytes of text and
	// always the same. Records without a lane, "", are never deferred.
	// nil: no lanes, everything in order.
	Of func(bus.Record) string

	// Cost is the effort to apply a record, in bytes of an ordinary
	// one. nil: its size.
	Cost func(bus.Record) int

	MaxCost int // most cost of one transaction; default MaxBytes

	Late         time.Duration // age of a record from which lanes are held to their shares: more than a consumer waits to gather some; default 400 ms
	Target       time.Duration // longest time of a transaction, about, unless all are later than that: the next one waits for it; default 75 ms
	Turn         time.Duration // the same for a lane's turn, for which all others wait; default 25 ms
	MaxPositions int           // most positions of lanes that a member keeps; beyond it no more lanes are deferred; default 10,000
}

// WithDefaults returns l with defaults in place of zeros.
func (l Config) WithDefaults() Config {
	l.Late = cmp.Or(l.Late, 400*time.Millisecond)
	l.Target = cmp.Or(l.Target, 75*time.Millisecond)
	l.Turn = cmp.Or(l.Turn, 25*time.Millisecond)
	l.MaxPositions = cmp.Or(l.MaxPositions, 10_000)
	if l.Cost == nil {
		l.Cost = bus.Record.Size
	}
	return l
}

const maxLaneName = 255

// of returns the lane of a record; "" without lanes, or if the database
// can't store the name.
func (l Config) of(r bus.Record) string {
	if l.Of == nil {
		return ""
	}
	lane := l.Of(r)
	if len(lane) > maxLaneName || !utf8.ValidString(lane) || strings.Contains(lane, "\x00") {
		return ""
	}
	return lane
}

// lateParts: a transaction may take this part of the consumer's delay. That
// adds little to the delay of all, and larger transactions catch up sooner.
const lateParts = 4

// TargetAfter returns how long a transaction may take whose first
// record has waited that long.
func (l Config) TargetAfter(waited time.Duration) time.Duration {
	return max(l.Target, waited/lateParts)
}

// inTimeParts: while nothing is late, a lane has at most this part of a
// transaction. Its limit was learned from earlier records: new ones may
// cost far more, and all would wait for them.
const inTimeParts = 4

// inTime returns a lane's part of a transaction's limit while nothing is late.
func (l Config) inTime(limit Amount) Amount {
	if l.Of == nil {
		return limit
	}
	return Amount{max(1, limit.Records/inTimeParts), max(1, limit.Cost/inTimeParts), limit.Bytes}
}

func (l Config) size(r bus.Record) Amount { return Amount{1, l.Cost(r), r.Size()} }

// Limits of a lane's share of the transactions while the consumer is late.
const (
	minShares = 4 // a quarter, however few lanes there are
	maxShares = 8 // an eighth, however many: if more send alike, none of them delays all
)

// Amount is an amount of work: records, their cost, and their bytes in memory.
type Amount struct{ Records, Cost, Bytes int }

func (a Amount) plus(b Amount) Amount {
	return Amount{a.Records + b.Records, a.Cost + b.Cost, a.Bytes + b.Bytes}
}

func (a Amount) within(limit Amount) bool {
	return a.Records <= limit.Records && a.Cost <= limit.Cost && a.Bytes <= limit.Bytes
}

// Fills reports whether nothing more fits in beside a.
func (a Amount) Fills(limit Amount) bool {
	return a.Records >= limit.Records || a.Cost >= limit.Cost || a.Bytes >= limit.Bytes
}

// part returns a's part of a limit. Memory does not count: the
// transaction frees it.
func (a Amount) part(limit Amount) float64 {
	return max(float64(a.Records)/float64(limit.Records), float64(a.Cost)/float64(limit.Cost))
}

// decision is what to do with the log's next record.
type decision int

const (
	applies decision = iota // in this transaction
	defers                  // later, by its lane's own position
	waits                   // the transaction is full; first in the next one
)

// shares decides by each lane's share which records a transaction holds.
type shares struct {
	limit  Amount
	most   Amount // of one lane in time; all, once something is late
	recent *Usage // by the transactions before
	taken  Amount
	lanes  map[string]Amount // bounded by the records of a transaction
}

// laneState is the state of a record's lane and partition when the
// record is admitted.
type laneState struct {
	behind    bool // earlier records of the lane are deferred there: order is kept
	elsewhere bool // they are in another partition: the lane has turns
	late      bool // the record has waited so long that shares apply
	mayDefer  bool // there is room for one more lane's position
}

// admit decides about one record. It always admits a lane's first
// record in a transaction, unless the lane is deferred somewhere, or
// one record of it filled the transaction before: so a lane that sends
// little is never deferred.
func (r *shares) admit(lane string, size Amount, s laneState) decision {
	has := r.lanes[lane]
	over := s.elsewhere || lane == r.recent.filled || has.Records > 0 && r.exceeds(lane, has.plus(size))
	switch {
	case s.behind:
		return defers
	case s.late && s.mayDefer && lane != "" && over:
		return defers
	case r.taken.Records > 0 && !(r.taken.plus(size).within(r.limit) && has.plus(size).within(r.most)):
		return waits
	}
	r.taken = r.taken.plus(size)
	r.lanes[lane] = has.plus(size)
	return applies
}

// exceeds reports whether a lane would exceed its share with so much of
// this transaction. The share is computed for one more lane than there
// are, unless more than maxShares send alike: so a few lanes cannot
// keep a consumer late.
func (r *shares) exceeds(lane string, has Amount) bool {
	all := max(someUsage, r.recent.all+r.taken.part(r.limit))
	n := min(maxShares, max(minShares, len(r.recent.lanes)+1, len(r.lanes)+1))
	return r.recent.lanes[lane]+has.part(r.limit) > all/float64(n)
}

// filling returns the lane of the one record that filled the transaction.
func (r *shares) filling() string {
	for lane, has := range r.lanes {
		if r.taken.Records == 1 && has.Records == 1 && has.Fills(r.limit) {
			return lane
		}
	}
	return ""
}

// Usage is each lane's recent part of transactions' limits. One
// transaction alone would show equal lanes as floods: it holds whatever
// came together, often of one partition and few lanes.
type Usage struct {
	lanes  map[string]float64 // bounded by minUsage
	all    float64
	filled string // the lane whose one record was all of the last one; "": none
}

// Weights of past transactions.
const (
	usageKept = 1 - 1.0/8  // of each, with every later one
	minUsage  = 1.0 / 1024 // of a lane that is kept
	someUsage = 2          // transactions: below it, parts are of so many
)

// NewUsage returns an empty usage.
func NewUsage() *Usage { return &Usage{lanes: make(map[string]float64)} }

// Remember adds a transaction with records to apply.
func (u *Usage) Remember(g *Gathering) {
	u.add(g.shares.lanes, g.shares.limit)
	u.filled = g.shares.filling()
}

// add adds each lane's part of a transaction.
func (u *Usage) add(lanes map[string]Amount, limit Amount) {
	u.all = 0
	for lane, had := range u.lanes {
		if had *= usageKept; had < minUsage {
			delete(u.lanes, lane)
			continue
		}
		u.lanes[lane] = had
		u.all += had
	}
	for lane, has := range lanes {
		part := has.part(limit)
		u.lanes[lane] += part
		u.all += part
	}
}
