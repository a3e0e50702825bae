package follow

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/broker"
	"github.com/weirlog/weir/shared/bus/internal/clock"
	"github.com/weirlog/weir/shared/bus/internal/wire"
	"github.com/weirlog/weir/shared/lifecycle"
)

// Chunk is one answer for one partition, or a piece of it.
type Chunk struct {
	Topic         wire.TopicID
	Partition     int
	Records       []bus.Record
	Next          int64 // next offset: after the records and any hole behind them
	HighWatermark int64
	Bytes         int // unpacked
}

// Follower reads partitions of one topic from given positions until it is
// stopped. It finds the leaders, follows them when they change, and
// reconnects. A partition without a leader delays no other. Chunks of one
// partition are delivered in order; of several, from several goroutines.
type Follower struct {
	Cluster   *broker.Cluster
	Logger    *slog.Logger
	Topic     string
	ID        wire.TopicID // of the positions' topic
	Positions map[int]int64
	Wait      time.Duration // how long a broker may delay an empty answer
	MaxBytes  int           // of one answer; one partition gets at most half

	// Deliver takes a chunk. While it blocks, the broker is not asked
	// for more. With Lends, it must not keep the chunk: the next answer
	// reuses its memory.
	Deliver func(ctx context.Context, c Chunk) error
	Lends   bool
	// Outside decides about a position outside the log, or in another
	// topic's: where to continue, or to stop with this partition.
	Outside func(ctx context.Context, partition int, position int64, log broker.LogBounds) (next int64, goOn bool)
	// AtEnd is called whenever a partition is delivered to its end; may be nil.
	AtEnd func(partition int)
}

// Run follows until ctx ends or Deliver fails.
func (f *Follower) Run(ctx context.Context) error {
	for failures := 1; ; failures++ {
		err := f.session(ctx)
		if !errors.Is(err, bus.ErrTopicReplaced) {
			return err
		}
		if err = f.changeOver(ctx); err != nil && ctx.Err() == nil {
			f.Logger.Warn("cannot read the recreated topic yet", "error", err)
		}
		lifecycle.Pause(ctx, clock.Backoff(failures, 20*time.Millisecond, 2*time.Second))
	}
}

// session reads until ctx ends, Deliver fails, or the topic is replaced.
func (f *Follower) session(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := &session{follower: f, ctx: ctx, end: cancel, unassigned: f.Positions, readers: make(map[int32]*brokerReader), lost: make(chan error, 1)}
	err := s.run(ctx)
	cancel(err)
	s.wg.Wait()
	f.Positions = s.unassigned
	return context.Cause(ctx)
}

// changeOver asks Outside where to continue in the topic that replaced
// the old one.
func (f *Follower) changeOver(ctx context.Context) error {
	seen, err := f.Cluster.Layout(ctx, f.Topic)
	if err != nil {
		return err
	}
	there := slices.DeleteFunc(slices.Collect(maps.Keys(f.Positions)), func(p int) bool { return p >= len(seen.Topics[f.Topic].Leaders) })
	logs, err := f.Cluster.AllLogs(ctx, f.Topic, there)
	if err != nil {
		return err
	}
	for p, position := range f.Positions {
		log, exists := logs.Bounds[p]
		log.Replaced, log.Topic, log.Gone = true, logs.ID, !exists
		next, goOn := f.Outside(ctx, p, position, log)
		if f.Positions[p] = next; !goOn || !exists {
			delete(f.Positions, p)
		}
	}
	f.ID = logs.ID
	return nil
}
