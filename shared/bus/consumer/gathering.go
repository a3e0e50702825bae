package consumer

import (
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/clock"
)

// gathering is the work of a transaction while it is gathered from the log.
type gathering struct {
	work
	lanes     Lanes
	backlogs  backlogs // as they are before
	turns     *turns
	shares    shares
	deferring map[laneKey]bool // lanes that are left behind from this work on; bounded by Lanes.Most
	reached   map[int]int64    // how far each partition is read
	full      bool
}

// maxDeferred is how many records one transaction defers: it must not delay
// what it applies for longer than that waits for others.
const maxDeferred = 20_000

// newGathering is an empty transaction of at most limit, after those of lately.
func newGathering(lanes Lanes, limit amount, lately *usage, backlogs backlogs, turns *turns) *gathering {
	return &gathering{
		lanes: lanes, backlogs: backlogs, turns: turns,
		shares:    shares{limit: limit, most: lanes.inTime(limit), lately: lately, lanes: make(map[string]amount)},
		deferring: make(map[laneKey]bool), reached: make(map[int]int64),
	}
}

// begun reports whether there is work.
func (g *gathering) begun() bool { return len(g.records)+len(g.deferred) > 0 }

// taken is how much is to be applied, and limit how much may be.
func (g *gathering) taken() amount { return g.shares.taken }
func (g *gathering) limit() amount { return g.shares.limit }

// take returns how many records belong to this transaction, or
// are left to their lanes with it.
func (g *gathering) take(records []bus.Record) (n int) {
	late := g.late(records)
	if late {
		g.shares.most = g.shares.limit
	}
	for n < len(records) && !g.full {
		if g.full = !g.add(records[n], late); !g.full {
			n++
			g.full = g.shares.taken.fills(g.shares.limit) || len(g.deferred) >= maxDeferred
		}
	}
	return n
}

// late reports whether lanes are held to their shares in a chunk.
func (g *gathering) late(records []bus.Record) bool {
	return g.lanes.Of != nil && len(records) > 0 && clock.Now().Sub(records[0].Time) >= g.lanes.Late
}

// add returns false where a record belongs to the next transaction.
func (g *gathering) add(r bus.Record, late bool) bool {
	s, at := laneState{late: late}, laneKey{g.lanes.of(r), r.Partition}
	if at.lane != "" {
		b, left := g.backlogs[at]
		s.behind, s.elsewhere = g.deferring[at] || left && r.Offset >= b.next, g.turns.has(at.lane)
		s.mayDefer = len(g.backlogs)+len(g.deferring) < g.lanes.Most && !(left && r.Offset < b.next) // the partition's position was set back
	}
	switch g.shares.admit(at.lane, g.lanes.size(r), s) {
	case waits:
		return false
	case defers:
		g.deferring[at] = true
		g.deferred = append(g.deferred, deferredRecord{at, r.Offset, r.Size(), r.Time})
	default:
		g.records = append(g.records, r)
	}
	return true
}
