package lanes

import (
	"cmp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weirlog/weir/shared/bus"
)

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

	Late         time.Duration // age of a record from which lanes are held to their shares; default 100 ms
	Target       time.Duration // longest time of a transaction, about, unless all are later than that: the next one waits for it; default 75 ms
	Turn         time.Duration // the same for a lane's turn, for which all others wait; default 25 ms
	MaxPositions int           // most positions of lanes that a member keeps; beyond it no more lanes are deferred; default 10,000
}

// WithDefaults returns l with defaults in place of zeros.
func (l Config) WithDefaults() Config {
	l.Late = cmp.Or(l.Late, 100*time.Millisecond)
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
