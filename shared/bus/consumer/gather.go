package consumer

import (
	"cmp"
	"context"
	"time"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/clock"
	"github.com/weirlog/weir/shared/bus/internal/follow"
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

// Bounds of what one transaction defers: it must not delay what it applies
// for longer than that waits for others.
const (
	maxDeferred   = 20_000
	deferringWait = 50 * time.Millisecond
)

// maxBatch is the largest transaction.
func (c *Consumer) maxBatch() amount {
	return amount{c.cfg.MaxRecords, cmp.Or(c.cfg.Lanes.MaxCost, c.cfg.MaxBytes), c.cfg.MaxBytes}
}

func (a *assignment) gather() *gathering {
	lanes, limit := a.consumer.cfg.Lanes, a.limit.limit(a.consumer.maxBatch())
	return &gathering{
		lanes: lanes, backlogs: a.backlogs, turns: a.turns,
		shares:    shares{limit: limit, most: lanes.inTime(limit), lately: a.lately, filled: a.filled, lanes: make(map[string]amount)},
		deferring: make(map[laneKey]bool), reached: make(map[int]int64),
	}
}

// begun reports whether there is work.
func (g *gathering) begun() bool { return len(g.records)+len(g.deferred) > 0 }

// collect gathers records until there are enough or the first has waited long
// enough. While lanes wait for their turn, it does not wait.
func (a *assignment) collect(ctx context.Context) (*gathering, error) {
	g := a.gather()
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	for !g.full {
		c, err := a.nextChunk(ctx, timer, g.begun())
		if err != nil {
			return nil, err
		}
		if c == nil {
			break
		}
		a.see(*c)
		records, begun := len(g.records), g.begun()
		a.consume(c, g)
		switch {
		case records == 0 && len(g.records) > 0:
			timer.Reset(a.consumer.cfg.MaxWait)
		case !begun && g.begun():
			timer.Reset(max(a.consumer.cfg.MaxWait, deferringWait))
		}
		if !g.begun() && len(g.reached) > 0 {
			break // nothing but holes or an empty partition: worth knowing
		}
	}
	return g, nil
}

// nextChunk returns nil when the time is over (it runs if begun), when parked
// records are to be replayed, or when it is a lane's turn and nothing has come.
func (a *assignment) nextChunk(ctx context.Context, timer *time.Timer, begun bool) (*follow.Chunk, error) {
	over, asked := timer.C, (<-chan struct{})(nil)
	if !begun {
		over, asked = nil, a.asked
	}
	select {
	case <-over:
		return nil, nil
	default:
	}
	if c := a.input.ready(); c != nil {
		return c, nil
	}
	if a.turns.next != nil {
		return nil, nil
	}
	select {
	case c := <-a.input.chunks:
		return a.input.hold(c), nil
	case s := <-a.turns.read:
		a.turns.readDone(s)
		return nil, nil
	case <-over:
		return nil, nil
	case <-asked:
		a.due = true
		return nil, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// consume moves records out of the held chunk as far as the limits allow.
func (a *assignment) consume(c *follow.Chunk, g *gathering) {
	if a.input.took(g.take(c.Records)) {
		g.reached[c.Partition] = c.Next
	}
}

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
