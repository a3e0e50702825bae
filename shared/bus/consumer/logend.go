package consumer

import (
	"context"

	"github.com/weirlog/weir/shared/bus/internal/follow"
	"github.com/weirlog/weir/shared/lifecycle"
)

// receive notes the end of the log when a chunk was fetched, and adds
// the chunk to the input, where it may wait for long.
func (a *assignment) receive(ctx context.Context, c follow.Chunk) error {
	a.consumer.status.Reach.See(c.Partition, c.HighWatermark)
	return a.input.Receive(ctx, c)
}

// watchEnds asks for the ends of logs that are not fully applied: while
// nothing can be applied, nothing is fetched that would show them.
func (a *assignment) watchEnds(ctx context.Context) {
	for ctx.Err() == nil {
		lifecycle.Pause(ctx, a.consumer.cfg.EndWatch)
		if behind := a.consumer.status.Reach.Lagging(a.consumer.cfg.EndWatch); len(behind) > 0 {
			a.readEnds(ctx, behind)
		}
	}
}

func (a *assignment) readEnds(ctx context.Context, partitions []int) {
	c := a.consumer
	logs, err := c.cluster.Logs(ctx, c.cfg.Topic, partitions)
	if err != nil || logs.ID != a.topic {
		c.logger.Debug("cannot see where the log ends", "error", err)
		return
	}
	c.status.Reach.Ends(logs.Bounds)
}
