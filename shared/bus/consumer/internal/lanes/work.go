package lanes

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/batch"
	"github.com/weirlog/weir/shared/bus/internal/clock"
	"github.com/weirlog/weir/shared/bus/internal/wire"
)

// Work is what one transaction does: it applies records, and moves the
// positions after them.
type Work struct {
	Records  []bus.Record
	Deferred []Deferred // for their lanes; in the order of their partitions

	Lane  *Key  // the lane of deferred records; nil: they are in the order of the log
	Until int64 // how far the lane is read
}

// Empty reports whether there is nothing to do.
func (w Work) Empty() bool { return len(w.Records) == 0 && len(w.Deferred) == 0 && w.Lane == nil }

// Divided returns three parts of the work: records before low, before
// high, and the rest. Each defers what is before its last records, and
// the last one the remainder.
func (w Work) Divided(low, high int) []Work {
	parts := []Work{{Records: w.Records[:low]}, {Records: w.Records[low:high]}, {Records: w.Records[high:]}}
	rest := w.Deferred
	for i := range parts {
		parts[i].Lane = w.Lane
		if last := i == len(parts)-1; last {
			parts[i].Deferred, parts[i].Until = rest, w.Until
			break
		}
		parts[i].Deferred, rest = split(rest, parts[i].Ends())
	}
	return slices.DeleteFunc(parts, func(p Work) bool { return len(p.Records) == 0 && len(p.Deferred) == 0 && p.Until == 0 })
}

// split divides deferred records by the given offsets of their partitions.
func split(all []Deferred, ends map[int]int64) (before, rest []Deferred) {
	for _, p := range all {
		if p.Mark.Offset < ends[p.Partition] {
			before = append(before, p)
		} else {
			rest = append(rest, p)
		}
	}
	return before, rest
}

// Marks returns the last record of each partition, deferred or not, of
// work in the order of the log.
func (w Work) Marks() map[int]bus.Mark {
	last := make(map[int]int)
	for i, r := range w.Records {
		last[r.Partition] = i
	}
	marks := make(map[int]bus.Mark, len(last))
	for p, i := range last {
		marks[p] = w.Records[i].Mark()
	}
	for _, d := range w.Deferred {
		if at, known := marks[d.Partition]; !known || d.Mark.Offset > at.Offset {
			marks[d.Partition] = d.Mark
		}
	}
	return marks
}

// Ends returns how far each partition is read with this work.
func (w Work) Ends() map[int]int64 {
	ends := make(map[int]int64)
	for _, r := range w.Records {
		ends[r.Partition] = max(ends[r.Partition], r.Offset+1)
	}
	for _, p := range w.Deferred {
		ends[p.Partition] = max(ends[p.Partition], p.Mark.Offset+1)
	}
	if w.Lane != nil {
		ends[w.Lane.Partition] = max(ends[w.Lane.Partition], w.Until)
	}
	return ends
}

// Request asks for records of a backlog.
type Request struct {
	Key
	Next, Last int64
	spans      []Span
	Limit      Amount
}

// Batch is what was read: the lane's records from its position to Next.
type Batch struct {
	Request
	Records []bus.Record
	Taken   Amount
	Next    int64
	Err     error
}

// Skip moves Next to the next span.
func (s *Batch) Skip() {
	for len(s.spans) > 0 && s.spans[0].Last < s.Next {
		s.spans = s.spans[1:]
	}
	if len(s.spans) > 0 {
		s.Next = max(s.Next, s.spans[0].First)
	}
}

// Choose takes the lane's records until there are enough, and reports
// whether there are.
func (s *Batch) Choose(p batch.Piece, lanes Config) (full bool) {
	for _, r := range p.Records {
		if r.Offset > s.Last {
			break
		}
		if lanes.of(r) != s.Lane {
			continue
		}
		size := lanes.size(r)
		if len(s.Records) > 0 && !s.Taken.plus(size).within(s.Limit) {
			s.Next = r.Offset
			return true
		}
		s.Records, s.Taken = append(s.Records, r.Detached()), s.Taken.plus(size) // a copy, which does not keep its whole batch in memory
	}
	s.Next = min(p.Next, s.Last+1)
	return false
}

// Cut drops what exceeds a limit that was lowered after the read.
func (s *Batch) Cut(limit Amount, lanes Config) {
	taken := Amount{}
	for i, r := range s.Records {
		size := lanes.size(r)
		if i > 0 && !taken.plus(size).within(limit) {
			s.Records, s.Next = s.Records[:i], r.Offset
			break
		}
		taken = taken.plus(size)
	}
	s.Taken, s.Limit = taken, limit
}

// Bounds of a BatchLimit.
const (
	minScale   = 1.0 / 256
	firstScale = 1.0 / 8
)

// BatchLimit is the part of the largest transaction that takes about
// the target time.
type BatchLimit struct{ scale float64 }

// NewBatchLimit begins low with lanes, until costs are measured;
// without lanes transactions have full size.
func NewBatchLimit(lanes Config) *BatchLimit {
	if lanes.Of == nil {
		return &BatchLimit{1}
	}
	return &BatchLimit{firstScale}
}

// Limit returns how much the next transaction may hold.
func (l *BatchLimit) Limit(most Amount) Amount {
	scaled := func(n int) int { return max(1, int(float64(n)*l.scale)) }
	return Amount{scaled(most.Records), scaled(most.Cost), most.Bytes}
}

// Timing is how long a transaction took: for its effect, and for all around it.
type Timing struct{ Effect, Overhead time.Duration }

// minEffectRatio is how many times the overhead an effect may always
// take: on a slow machine smaller transactions only add overhead.
const minEffectRatio = 4

// Learn adapts to a transaction: after a slow one, the next gets the
// size that would have met the target; after a quick full one, a larger
// size. It recovers soon from a bad measurement.
func (l *BatchLimit) Learn(took Timing, target time.Duration, held, limit, most Amount) {
	target = max(target, minEffectRatio*took.Overhead)
	part := max(float64(held.Records)/float64(most.Records), float64(held.Cost)/float64(most.Cost))
	switch {
	case took.Effect > target:
		l.scale = max(minScale, min(l.scale, part*float64(target)/float64(took.Effect)))
	case took.Effect < target*3/4 && (2*held.Records >= limit.Records || 2*held.Cost >= limit.Cost):
		l.scale = min(1, l.scale*2)
	}
}

// Gathering is a transaction's work while it is gathered from the log.
type Gathering struct {
	Work
	lanes     Config
	backlogs  Backlogs // before this work
	turns     *Turns
	shares    shares
	deferring map[Key]bool  // lanes that this work defers first; bounded by Lanes.MaxPositions
	Reached   map[int]int64 // how far each partition is read
	Full      bool
}

// maxDeferred is how many records one transaction defers: deferring
// must not delay the applied records longer than gathering does.
const maxDeferred = 20_000

// NewGathering returns an empty transaction of at most limit. recent
// has the ones before.
func NewGathering(lanes Config, limit Amount, recent *Usage, backlogs Backlogs, turns *Turns) *Gathering {
	return &Gathering{
		lanes: lanes, backlogs: backlogs, turns: turns,
		shares:    shares{limit: limit, most: lanes.inTime(limit), recent: recent, lanes: make(map[string]Amount)},
		deferring: make(map[Key]bool), Reached: make(map[int]int64),
	}
}

// Begun reports whether there is work.
func (g *Gathering) Begun() bool { return len(g.Records)+len(g.Deferred) > 0 }

// Taken returns how much is to be applied.
func (g *Gathering) Taken() Amount { return g.shares.taken }

// Limit returns how much may be.
func (g *Gathering) Limit() Amount { return g.shares.limit }

// Take returns how many records this transaction takes, deferred ones included.
func (g *Gathering) Take(records []bus.Record) (n int) {
	late := g.late(records)
	if late {
		g.shares.most = g.shares.limit
	}
	for n < len(records) && !g.Full {
		if g.Full = !g.add(records[n], late); !g.Full {
			n++
			g.Full = g.shares.taken.Fills(g.shares.limit) || len(g.Deferred) >= maxDeferred
		}
	}
	return n
}

// late reports whether a chunk's lanes are held to their shares.
func (g *Gathering) late(records []bus.Record) bool {
	return g.lanes.Of != nil && len(records) > 0 && clock.Now().Sub(records[0].Time) >= g.lanes.Late
}

// add returns false if a record belongs to the next transaction.
func (g *Gathering) add(r bus.Record, late bool) bool {
	s, at := laneState{late: late}, Key{g.lanes.of(r), r.Partition}
	if at.Lane != "" {
		b, left := g.backlogs[at]
		s.behind, s.elsewhere = g.deferring[at] || left && r.Offset >= b.Next, g.turns.Has(at.Lane)
		s.mayDefer = len(g.backlogs)+len(g.deferring) < g.lanes.MaxPositions && !(left && r.Offset < b.Next) // the partition's position was set back
	}
	switch g.shares.admit(at.Lane, g.lanes.size(r), s) {
	case waits:
		return false
	case defers:
		g.deferring[at] = true
		g.Deferred = append(g.Deferred, Deferred{at, r.Mark(), r.Size()})
	default:
		g.Records = append(g.Records, r)
	}
	return true
}

// Key identifies a lane in one partition.
type Key struct {
	Lane      string
	Partition int
}

// Backlog is what a lane has deferred in one partition: all its records
// from Next to Last.
type Backlog struct {
	Key
	Topic      wire.TopicID
	Next, Last int64
	Records    int64 // how many, with how many bytes
	Bytes      int64
	Since      time.Time // when the first of them, or the record before it, was written
	Halted     string    // why the lane is stopped there; "": it is not
	Spans      []Span
}

// Span is a range of the log with records of a backlog. Spans only save
// reading what is between. Only the member that deferred the records
// has them, in memory.
type Span struct{ First, Last int64 }

// Spans are joined if they are close, or too many.
const (
	closeSpans = 100
	maxSpans   = 64
)

// extended returns the backlog with one more record. It owns its spans.
func (b Backlog) extended(p Deferred) Backlog {
	b.Last, b.Records, b.Bytes = p.Mark.Offset, b.Records+1, b.Bytes+int64(p.Bytes)
	if n := len(b.Spans); n > 0 && (p.Mark.Offset-b.Spans[n-1].Last <= closeSpans || n == maxSpans) {
		b.Spans[n-1].Last = p.Mark.Offset
	} else {
		b.Spans = append(b.Spans, Span{p.Mark.Offset, p.Mark.Offset})
	}
	return b
}

// Advanced returns the backlog after records of it were applied and its
// lane was read up to next.
func (b Backlog) Advanced(records []bus.Record, next int64) Backlog {
	b.Next, b.Records = next, max(0, b.Records-int64(len(records)))
	for _, r := range records {
		b.Bytes, b.Since = max(0, b.Bytes-int64(r.Size())), r.Time
	}
	for len(b.Spans) > 0 && b.Spans[0].Last < next {
		b.Spans = b.Spans[1:]
	}
	return b
}

// Over reports whether nothing is deferred.
func (b Backlog) Over() bool { return b.Next > b.Last }

// before reports whether a backlog is older than another one of its lane.
func (b Backlog) before(other Backlog) bool {
	return b.Since.Before(other.Since) || b.Since.Equal(other.Since) && b.Partition < other.Partition
}

// Deferred is a record deferred to its lane.
type Deferred struct {
	Key
	Mark  bus.Mark
	Bytes int
}

// Backlogs are those of the lanes in an assignment's partitions;
// bounded by Lanes.MaxPositions.
type Backlogs map[Key]Backlog

// AnyHalted reports whether a lane is stopped.
func (all Backlogs) AnyHalted() bool {
	for _, b := range all {
		if b.Halted != "" {
			return true
		}
	}
	return false
}

// Lower lowers partitions' positions to those of their lanes.
func (all Backlogs) Lower(positions map[int]int64) {
	for at, b := range all {
		if next, there := positions[at.Partition]; there {
			positions[at.Partition] = min(next, b.Next)
		}
	}
}

// Extended returns, ordered, the backlogs that change when
// records are deferred.
func (all Backlogs) Extended(topic wire.TopicID, records []Deferred) []Backlog {
	changed := make(map[Key]Backlog)
	for _, p := range records {
		b, known := changed[p.Key]
		if !known {
			b, known = all[p.Key]
			b.Spans = slices.Clone(b.Spans)
		}
		switch {
		case !known:
			b = Backlog{Key: p.Key, Topic: topic, Next: p.Mark.Offset, Since: p.Mark.Time}
		case p.Mark.Offset <= b.Last:
			continue // deferred already: the partition's position was set back
		}
		changed[p.Key] = b.extended(p)
	}
	return slices.SortedFunc(maps.Values(changed), byLaneKey)
}

// oldest returns a lane's backlog that waits longest, after the one
// being served. It skips pausing ones.
func (all Backlogs) oldest(lane string, served *Batch, pausing func(Key) bool) (oldest Backlog, w readiness) {
	for at, b := range all {
		if at.Lane != lane || b.Halted != "" {
			continue
		}
		if served != nil && served.Err == nil && at == served.Key {
			b = b.Advanced(served.Records, served.Next)
		}
		switch {
		case b.Over():
		case pausing(at):
			w = max(w, later)
		case w < ready || b.before(oldest):
			oldest, w = b, ready
		}
	}
	return oldest, w
}

func byLaneKey(a, b Backlog) int {
	return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Lane, b.Lane))
}
