package consumer

import (
	"context"
	"time"

	"github.com/weirlog/weir/shared/bus/internal/broker"
	"github.com/weirlog/weir/shared/bus/internal/clock"
	"github.com/weirlog/weir/shared/bus/internal/follow"
	"github.com/weirlog/weir/shared/lifecycle"
)

// reach is how far a partition is applied, where its log ends as far as is
// known, and when all that it has was last fetched.
type reach struct {
	next, end int64
	fetched   time.Time
}

// begin notes where a claimed partition goes on. Without a
// leader its log is taken to end there.
func (a *assignment) begin(partition int, log broker.LogBounds) {
	next := a.claims[partition].next
	a.consumer.note(func() { a.consumer.reach[partition] = reach{next: next, end: max(next, log.End)} })
}

// receive notes where the log ended when a chunk was fetched, and adds that to
// the input: there it may wait for long.
func (a *assignment) receive(ctx context.Context, c follow.Chunk) error {
	a.consumer.note(func() {
		r := a.consumer.reach[c.Partition]
		r.end = max(r.end, c.HighWatermark)
		a.consumer.reach[c.Partition] = r
	})
	return a.input.receive(ctx, c)
}

// fetched notes that all that a partition has is fetched.
func (a *assignment) fetched(partition int) {
	a.consumer.note(func() {
		r := a.consumer.reach[partition]
		r.fetched = clock.Now()
		a.consumer.reach[partition] = r
	})
}

// watchEnds asks where the logs end that are not applied to their end: while
// nothing can be applied, nothing more is fetched that would show it.
func (a *assignment) watchEnds(ctx context.Context) {
	for ctx.Err() == nil {
		lifecycle.Pause(ctx, a.consumer.cfg.EndWatch)
		if behind := a.consumer.lagging(); len(behind) > 0 {
			a.readEnds(ctx, behind)
		}
	}
}

// lagging are the assigned partitions that are behind, or may be.
func (c *Consumer) lagging() (partitions []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for p, r := range c.reach {
		if r.next < r.end || clock.Now().Sub(r.fetched) > c.cfg.EndWatch {
			partitions = append(partitions, p)
		}
	}
	return partitions
}

func (a *assignment) readEnds(ctx context.Context, partitions []int) {
	c := a.consumer
	logs, err := c.cluster.Logs(ctx, c.cfg.Topic, partitions)
	if err != nil || logs.ID != a.topic {
		c.logger.Debug("cannot see where the log ends", "error", err)
		return
	}
	c.note(func() {
		for p, log := range logs.Bounds {
			r := c.reach[p]
			r.end = log.End
			c.reach[p] = r
		}
	})
}
