package consumer

import (
	"cmp"
	"context"
	"time"

	"github.com/weirlog/weir/shared/bus/internal/follow"
)

// deferringWait is how long what is deferred waits for more.
const deferringWait = 50 * time.Millisecond

// maxBatch is the largest transaction.
func (c *Consumer) maxBatch() amount {
	return amount{c.cfg.MaxRecords, cmp.Or(c.cfg.Lanes.MaxCost, c.cfg.MaxBytes), c.cfg.MaxBytes}
}

func (a *assignment) gather() *gathering {
	return newGathering(a.consumer.cfg.Lanes, a.limit.limit(a.consumer.maxBatch()), a.lately, a.backlogs, a.turns)
}

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
	if a.ahead.next != nil {
		return nil, nil
	}
	select {
	case c := <-a.input.chunks:
		return a.input.hold(c), nil
	case s := <-a.ahead.read:
		a.ahead.done(s)
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
