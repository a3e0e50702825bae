package lanes

import (
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/clock"
)

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
