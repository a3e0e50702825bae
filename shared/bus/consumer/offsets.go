package consumer

import (
	"context"
	"maps"
	"sync"
	"time"

	kafka "github.com/segmentio/kafka-go"

	"github.com/weirlog/weir/shared/lifecycle"
)

// groupOffsets are positions to commit to the Kafka group, for tools
// that show lag. Weir itself reads none.
type groupOffsets struct {
	mu      sync.Mutex
	pending map[int]int64
}

func newGroupOffsets() *groupOffsets { return &groupOffsets{pending: make(map[int]int64)} }

func (o *groupOffsets) note(positions map[int]int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.Copy(o.pending, positions)
}

func (o *groupOffsets) take() map[int]int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	taken := o.pending
	o.pending = make(map[int]int64)
	return taken
}

func (a *assignment) commitOffsets(ctx context.Context, generation *kafka.Generation) {
	for ctx.Err() == nil {
		lifecycle.Pause(ctx, time.Second)
		offsets := a.offsets.take()
		if len(offsets) == 0 {
			continue
		}
		if err := generation.CommitOffsets(map[string]map[int]int64{a.consumer.cfg.Topic: offsets}); err != nil {
			a.consumer.logger.Debug("cannot commit offsets to the group", "error", err)
		}
	}
}
