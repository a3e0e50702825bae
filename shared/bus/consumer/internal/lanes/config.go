package lanes

import (
	"cmp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weirlog/weir/shared/bus"
)

// A Config divides a consumer's work, so that no tenant waits for
// another's records. While a consumer is late, a lane over its share
// of a transaction is deferred: it gets a position of its own, in the
// table bus_deferred, and continues from there in turn with other such
// lanes. The consumer continues with the rest of the log. Records of
// one lane in one partition keep their order.
type Config struct {
	// Of names the lane of a record, in at most 255 bytes of text,
	// always the same one. Records of no lane, "", are never
	// deferred. nil: no lanes, everything in order.
	Of func(bus.Record) string

	// Cost is what a record takes to apply, measured in bytes of
	// an ordinary one. nil: its size.
	Cost func(bus.Record) int

	MaxCost int // most cost of one transaction; default what it may have in bytes

	Late   time.Duration // how long ago a record may be written before lanes are held to their shares; default 100 ms
	Target time.Duration // about how long a transaction takes at most, which the next one waits for, unless all are later than that; default 75 ms
	Turn   time.Duration // the same for a lane's turn, which all others wait for; default 25 ms
	Most   int           // most positions of lanes that a member keeps; beyond, no more lanes are deferred; default 10,000
}

// WithDefaults has the defaults for what is zero.
func (l Config) WithDefaults() Config {
	l.Late = cmp.Or(l.Late, 100*time.Millisecond)
	l.Target = cmp.Or(l.Target, 75*time.Millisecond)
	l.Turn = cmp.Or(l.Turn, 25*time.Millisecond)
	l.Most = cmp.Or(l.Most, 10_000)
	if l.Cost == nil {
		l.Cost = bus.Record.Size
	}
	return l
}

const maxLaneName = 255

// of is the lane of a record; "" where there are none, or the
// database can't store the name.
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

// lateParts: a transaction may take one such part of how late the
// consumer is. That delays nobody by much more than all are late,
// and larger transactions catch up sooner.
const lateParts = 4

// TargetAfter is how long a transaction may take whose first record
// has waited for so long.
func (l Config) TargetAfter(waited time.Duration) time.Duration {
	return max(l.Target, waited/lateParts)
}

// inTimeParts: while nothing is late, a lane has at most one such part of a
// transaction. Its limit was learned from the records of before: those that
// come may be dearer by far, and everybody would wait for all of them.
const inTimeParts = 4

// inTime is how much of a transaction's limit a lane has while nothing is late.
func (l Config) inTime(limit Amount) Amount {
	if l.Of == nil {
		return limit
	}
	return Amount{max(1, limit.Records/inTimeParts), max(1, limit.Cost/inTimeParts), limit.Bytes}
}

func (l Config) size(r bus.Record) Amount { return Amount{1, l.Cost(r), r.Size()} }
