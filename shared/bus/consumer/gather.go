package consumer

import (
	"cmp"
	"context"
	"time"

	"github.com/weirlog/weir/shared/bus/consumer/internal/lanes"
	"github.com/weirlog/weir/shared/bus/internal/clock"
	"github.com/weirlog/weir/shared/bus/internal/follow"
)

// deferringWait is how long deferred records wait for more.
const deferringWait = 50 * time.Millisecond

// maxBatch returns the limits of a transaction.
func (c *Consumer) maxBatch() lanes.Amount {
	return lanes.Amount{Records: c.cfg.MaxRecords, Cost: cmp.Or(c.cfg.Lanes.MaxCost, c.cfg.MaxBytes), Bytes: c.cfg.MaxBytes}
}

func (a *assignment) gather() *lanes.Gathering {
	return lanes.NewGathering(a.consumer.cfg.Lanes, a.limit.Limit(a.consumer.maxBatch()), a.recent, a.backlogs, a.turns)
}

// collect gathers records until there are enough or the first has
// waited long enough. It does not wait while lanes wait for a turn.
func (a *assignment) collect(ctx context.Context) (*lanes.Gathering, error) {
	g := a.gather()
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	for !g.Full {
		c, err := a.nextChunk(ctx, timer, g.Begun())
		if err != nil {
			return nil, err
		}
		if c == nil {
			break
		}
		a.see(*c)
		records, begun := len(g.Records), g.Begun()
		a.consume(c, g)
		switch {
		case records == 0 && len(g.Records) > 0:
			timer.Reset(a.wait())
		case !begun && g.Begun():
			timer.Reset(max(a.wait(), deferringWait))
		}
		if !g.Begun() && len(g.Reached) > 0 {
			break // only holes or an empty partition: worth noting
		}
	}
	return g, nil
}

// wait returns how long the first record of a transaction waits for others.
func (a *assignment) wait() time.Duration {
	longest := a.consumer.cfg.MaxWait
	return max(longest/10, longest-clock.Now().Sub(a.begun))
}

// nextChunk returns nil if the time is over (it runs if begun), if
// parked records are to be replayed, or if a lane's turn is due and
// nothing has come.
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
	if c := a.input.Ready(); c != nil {
		return c, nil
	}
	if a.ahead.next != nil {
		return nil, nil
	}
	select {
	case c := <-a.input.Chunks:
		return a.input.Hold(c), nil
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

// consume takes records from the held chunk within the limits.
func (a *assignment) consume(c *follow.Chunk, g *lanes.Gathering) {
	if a.input.Took(g.Take(c.Records)) {
		g.Reached[c.Partition] = c.Next
	}
}
