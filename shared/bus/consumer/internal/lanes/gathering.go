package lanes

import (
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/clock"
)

// Gathering is the work of a transaction while it is gathered from the log.
type Gathering struct {
	Work
	lanes     Config
	backlogs  Backlogs // as they are before
	turns     *Turns
	shares    shares
	deferring map[Key]bool  // lanes that are left behind from this work on; bounded by Lanes.Most
	Reached   map[int]int64 // how far each partition is read
	Full      bool
}

// maxDeferred is how many records one transaction defers: it must not delay
// what it applies for longer than that waits for others.
const maxDeferred = 20_000

// NewGathering is an empty transaction of at most limit, after those of lately.
func NewGathering(lanes Config, limit Amount, lately *Usage, backlogs Backlogs, turns *Turns) *Gathering {
	return &Gathering{
		lanes: lanes, backlogs: backlogs, turns: turns,
		shares:    shares{limit: limit, most: lanes.inTime(limit), lately: lately, lanes: make(map[string]Amount)},
		deferring: make(map[Key]bool), Reached: make(map[int]int64),
	}
}

// Begun reports whether there is work.
func (g *Gathering) Begun() bool { return len(g.Records)+len(g.Deferred) > 0 }

// Taken is how much is to be applied.
func (g *Gathering) Taken() Amount { return g.shares.taken }

// Limit is how much may be.
func (g *Gathering) Limit() Amount { return g.shares.limit }

// Take returns how many records belong to this transaction, or
// are left to their lanes with it.
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

// late reports whether lanes are held to their shares in a chunk.
func (g *Gathering) late(records []bus.Record) bool {
	return g.lanes.Of != nil && len(records) > 0 && clock.Now().Sub(records[0].Time) >= g.lanes.Late
}

// add returns false where a record belongs to the next transaction.
func (g *Gathering) add(r bus.Record, late bool) bool {
	s, at := laneState{late: late}, Key{g.lanes.of(r), r.Partition}
	if at.Lane != "" {
		b, left := g.backlogs[at]
		s.behind, s.elsewhere = g.deferring[at] || left && r.Offset >= b.Next, g.turns.Has(at.Lane)
		s.mayDefer = len(g.backlogs)+len(g.deferring) < g.lanes.Most && !(left && r.Offset < b.Next) // the partition's position was set back
	}
	switch g.shares.admit(at.Lane, g.lanes.size(r), s) {
	case waits:
		return false
	case defers:
		g.deferring[at] = true
		g.Deferred = append(g.Deferred, Deferred{at, r.Offset, r.Size(), r.Time})
	default:
		g.Records = append(g.Records, r)
	}
	return true
}
