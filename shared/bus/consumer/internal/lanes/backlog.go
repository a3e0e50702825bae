package lanes

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/wire"
)

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
