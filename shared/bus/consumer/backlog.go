package consumer

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/wire"
)

// laneKey is a lane in one partition.
type laneKey struct {
	lane      string
	partition int
}

// backlog is what a lane has deferred in one partition: all its
// records from next to last.
type backlog struct {
	laneKey
	topic      wire.TopicID
	next, last int64
	records    int64 // how many, and of how many bytes
	bytes      int64
	since      time.Time // when the first of them, or the one before it, was written
	halted     string    // why the lane is stopped there
	spans      []span
}

// span is where in the log a backlog's records are. Spans only
// save reading what is between. They are in the memory of the
// member that deferred the records.
type span struct{ first, last int64 }

// Spans are joined where they are close, and where there would be too many.
const (
	closeSpans = 100
	maxSpans   = 64
)

// extended is the backlog with one record more. It owns its spans.
func (b backlog) extended(p deferredRecord) backlog {
	b.last, b.records, b.bytes = p.offset, b.records+1, b.bytes+int64(p.bytes)
	if n := len(b.spans); n > 0 && (p.offset-b.spans[n-1].last <= closeSpans || n == maxSpans) {
		b.spans[n-1].last = p.offset
	} else {
		b.spans = append(b.spans, span{p.offset, p.offset})
	}
	return b
}

// advanced is the backlog after records of it were applied, and
// how far its lane is read.
func (b backlog) advanced(records []bus.Record, next int64) backlog {
	b.next, b.records = next, max(0, b.records-int64(len(records)))
	for _, r := range records {
		b.bytes, b.since = max(0, b.bytes-int64(r.Size())), r.Time
	}
	for len(b.spans) > 0 && b.spans[0].last < next {
		b.spans = b.spans[1:]
	}
	return b
}

// over reports whether nothing is left behind.
func (b backlog) over() bool { return b.next > b.last }

// before reports whether a backlog waits longer than another one of its lane.
func (b backlog) before(other backlog) bool {
	return b.since.Before(other.since) || b.since.Equal(other.since) && b.partition < other.partition
}

// deferredRecord is a record that was left to its lane.
type deferredRecord struct {
	laneKey
	offset int64
	bytes  int
	time   time.Time
}

// backlogs are what lanes have left behind in the partitions of
// an assignment; bounded by Lanes.Most.
type backlogs map[laneKey]backlog

// anyHalted reports whether a lane is stopped.
func (all backlogs) anyHalted() bool {
	for _, b := range all {
		if b.halted != "" {
			return true
		}
	}
	return false
}

// lower lowers positions of partitions to those of the lanes in them.
func (all backlogs) lower(positions map[int]int64) {
	for at, b := range all {
		if next, there := positions[at.partition]; there {
			positions[at.partition] = min(next, b.next)
		}
	}
}

// extended are the backlogs that change when records are left to
// their lanes, in one order.
func (all backlogs) extended(topic wire.TopicID, records []deferredRecord) []backlog {
	changed := make(map[laneKey]backlog)
	for _, p := range records {
		b, known := changed[p.laneKey]
		if !known {
			b, known = all[p.laneKey]
			b.spans = slices.Clone(b.spans)
		}
		switch {
		case !known:
			b = backlog{laneKey: p.laneKey, topic: topic, next: p.offset, since: p.time}
		case p.offset <= b.last:
			continue // it is deferred already: the partition's position was set back
		}
		changed[p.laneKey] = b.extended(p)
	}
	return slices.SortedFunc(maps.Values(changed), byLaneKey)
}

// oldest is the backlog of a lane that waits longest, after the one
// being served. Pausing ones are skipped.
func (all backlogs) oldest(lane string, served *laneBatch, pausing func(laneKey) bool) (oldest backlog, w readiness) {
	for at, b := range all {
		if at.lane != lane || b.halted != "" {
			continue
		}
		if served != nil && served.err == nil && at == served.laneKey {
			b = b.advanced(served.records, served.next)
		}
		switch {
		case b.over():
		case pausing(at):
			w = max(w, later)
		case w < ready || b.before(oldest):
			oldest, w = b, ready
		}
	}
	return oldest, w
}

func byLaneKey(a, b backlog) int {
	return cmp.Or(cmp.Compare(a.partition, b.partition), cmp.Compare(a.lane, b.lane))
}
