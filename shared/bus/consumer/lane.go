package consumer

import (
	"cmp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/wire"
)

// Lanes divide a consumer's work, so that nobody waits for what another one sends. While a consumer is late, a lane that takes more
// than its share of a transaction gets a position of its own, in the table bus_deferred, and goes on from there in turn with others
// that did, while the consumer goes on with the rest of the log. The records of one lane in one partition keep their order.
type Lanes struct {
	// Of names the lane of a record, in at most 255 bytes of text; the same record is always of the same lane. Records of no lane, "",
	// are never deferred. Nil: there are no lanes, and everything is applied in its order.
	Of func(bus.Record) string

	// Cost is what it takes to apply a record, measured in bytes of an ordinary one. Nil: its size.
	Cost func(bus.Record) int

	Late   time.Duration // how long ago a record may be written before lanes are held to their shares; default 100 ms
	Target time.Duration // about how long a transaction takes at most, which the next one waits for; default 150 ms
	Turn   time.Duration // the same for a lane's turn, which all others wait for; default 25 ms
	Most   int           // most positions of lanes that a member keeps; with that many nobody else is deferred; default 10,000
}

func (l Lanes) withDefaults() Lanes {
	l.Late = cmp.Or(l.Late, 100*time.Millisecond)
	l.Target = cmp.Or(l.Target, 150*time.Millisecond)
	l.Turn = cmp.Or(l.Turn, 25*time.Millisecond)
	l.Most = cmp.Or(l.Most, 10_000)
	if l.Cost == nil {
		l.Cost = bus.Record.Size
	}
	return l
}

// maxLaneName is the longest name of a lane.
const maxLaneName = 255

// of is the lane of a record; "" where the name is none that the database takes.
func (l Lanes) of(r bus.Record) string {
	lane := l.Of(r)
	if len(lane) > maxLaneName || !utf8.ValidString(lane) || strings.Contains(lane, "\x00") {
		return ""
	}
	return lane
}

func (l Lanes) size(r bus.Record) amount { return amount{1, l.Cost(r), r.Size()} }

// laneKey is a lane in one partition.
type laneKey struct {
	lane      string
	partition int
}

// backlog is what a lane has left behind in one partition: its records from next to last, all of them, and none of the other lanes'.
type backlog struct {
	laneKey
	topic      wire.TopicID
	next, last int64
	records    int64 // how many, and of how many bytes
	bytes      int64
	since      time.Time // when the first of them, or the one before it, was written
	halted     string    // why nobody comes to them any more
	spans      []span
}

// span is where in the log a backlog's records are. Spans save reading what lies between, and are known only to who has deferred
// the records; nothing else depends on them.
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

// advanced is the backlog after records of it were applied, and how far its lane is read.
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
