package lanes

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/wire"
)

// Key is a lane in one partition.
type Key struct {
	Lane      string
	Partition int
}

// Backlog is what a lane has deferred in one partition: all its
// records from next to last.
type Backlog struct {
	Key
	Topic      wire.TopicID
	Next, Last int64
	Records    int64 // how many, and of how many bytes
	Bytes      int64
	Since      time.Time // when the first of them, or the one before it, was written
	Halted     string    // why the lane is stopped there
	Spans      []Span
}

// Span is where in the log a backlog's records are. Spans only
// save reading what is between. They are in the memory of the
// member that deferred the records.
type Span struct{ First, Last int64 }

// Spans are joined where they are close, and where there would be too many.
const (
	closeSpans = 100
	maxSpans   = 64
)

// extended is the backlog with one record more. It owns its spans.
func (b Backlog) extended(p Deferred) Backlog {
	b.Last, b.Records, b.Bytes = p.offset, b.Records+1, b.Bytes+int64(p.Bytes)
	if n := len(b.Spans); n > 0 && (p.offset-b.Spans[n-1].Last <= closeSpans || n == maxSpans) {
		b.Spans[n-1].Last = p.offset
	} else {
		b.Spans = append(b.Spans, Span{p.offset, p.offset})
	}
	return b
}

// Advanced is the backlog after records of it were applied, and
// how far its lane is read.
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

// Over reports whether nothing is left behind.
func (b Backlog) Over() bool { return b.Next > b.Last }

// before reports whether a backlog waits longer than another one of its lane.
func (b Backlog) before(other Backlog) bool {
	return b.Since.Before(other.Since) || b.Since.Equal(other.Since) && b.Partition < other.Partition
}

// Deferred is a record that was left to its lane.
type Deferred struct {
	Key
	offset int64
	Bytes  int
	time   time.Time
}

// Backlogs are what lanes have left behind in the partitions of
// an assignment; bounded by Lanes.Most.
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

// Lower lowers positions of partitions to those of the lanes in them.
func (all Backlogs) Lower(positions map[int]int64) {
	for at, b := range all {
		if next, there := positions[at.Partition]; there {
			positions[at.Partition] = min(next, b.Next)
		}
	}
}

// Extended are the backlogs that change when records are left to
// their lanes, in one order.
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
			b = Backlog{Key: p.Key, Topic: topic, Next: p.offset, Since: p.time}
		case p.offset <= b.Last:
			continue // it is deferred already: the partition's position was set back
		}
		changed[p.Key] = b.extended(p)
	}
	return slices.SortedFunc(maps.Values(changed), byLaneKey)
}

// oldest is the backlog of a lane that waits longest, after the one
// being served. Pausing ones are skipped.
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
