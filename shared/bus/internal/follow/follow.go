package follow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	kafka "github.com/segmentio/kafka-go"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/batch"
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
	Gather    time.Duration // how long a broker gathers records after an answer that had some, unless it has many; 0: it answers with the first
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

// session lasts as long as the topic is the same. Every partition is
// unassigned or at the reader of one broker, so that none is lost:
// under one lock partitions go to a registered reader; a reader without
// any unregisters, or gives all back and wakes the assignment. A reader
// asks for all of its partitions each time and waits for no answer
// longer than Wait.
type session struct {
	follower *Follower
	ctx      context.Context
	end      context.CancelCauseFunc
	wg       sync.WaitGroup

	mu         sync.Mutex
	unassigned map[int]int64
	readers    map[int32]*brokerReader
	lost       chan error // why there are more unassigned partitions
}

// run repeatedly finds readers for unassigned partitions.
func (s *session) run(ctx context.Context) error {
	for failures := 0; ; failures++ {
		began := clock.Now()
		left, err := s.assign(ctx)
		if errors.Is(err, bus.ErrTopicReplaced) {
			return err
		}
		if left == 0 {
			select {
			case err = <-s.lost:
			case <-ctx.Done():
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if clock.Now().Sub(began) > 10*time.Second {
			failures = 0
		}
		s.report(failures, err)
		lifecycle.Pause(ctx, clock.Backoff(failures, 20*time.Millisecond, clock.LongestAbsence))
	}
}

// report logs at a higher level once failures last, then about once a minute.
func (s *session) report(failures int, err error) {
	level := slog.LevelDebug
	if failures%150 == 10 {
		level = slog.LevelWarn
	}
	s.follower.Logger.Log(s.ctx, level, "cannot read all partitions", "failures", failures, "error", err)
}

// assign gives unassigned partitions to the readers of their leaders
// and returns how many remain.
func (s *session) assign(ctx context.Context) (left int, err error) {
	f := s.follower
	if left = s.count(); left == 0 {
		return 0, nil
	}
	seen, err := f.Cluster.Layout(ctx, f.Topic)
	if err != nil {
		return left, err
	}
	t := seen.Topics[f.Topic]
	if t.Err != nil {
		return left, t.Err
	}
	if t.ID != f.ID {
		return left, s.verify(ctx)
	}
	return s.place(seen)
}

func (s *session) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.unassigned)
}

// verify asks every broker before it reports that the topic was replaced.
func (s *session) verify(ctx context.Context) error {
	f := s.follower
	replaced, err := f.Cluster.Replaced(ctx, f.Topic, f.ID)
	switch {
	case err != nil:
		return err
	case replaced:
		return bus.ErrTopicReplaced
	default:
		return errors.New("the brokers do not agree yet whether the topic was re-created")
	}
}

func (s *session) place(seen broker.Layout) (left int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	topic, leaders := s.follower.Topic, seen.Topics[s.follower.Topic].Leaders
	for p, position := range s.unassigned {
		address := seen.LeaderOf(topic, p)
		if address == "" {
			left++
			err = fmt.Errorf("partition %d: %w", p, kafka.LeaderNotAvailable)
			continue
		}
		s.readerOf(leaders[p], address).join(broker.FetchPartition{Partition: int32(p), Offset: position, Fresh: true})
		delete(s.unassigned, p)
	}
	return left, err
}

// readerOf returns a broker's reader, and starts a missing one. The
// caller holds the lock.
func (s *session) readerOf(broker int32, address string) *brokerReader {
	r := s.readers[broker]
	if r == nil {
		r = &brokerReader{session: s, follower: s.follower, broker: broker, address: address, decoder: batch.NewDecoder(s.follower.Topic)}
		s.readers[broker] = r
		s.wg.Go(func() { r.run(s.ctx) })
	}
	return r
}

// lose takes back partitions that can no longer be read, with the reason.
func (s *session) lose(why error, partitions ...broker.FetchPartition) {
	s.mu.Lock()
	for _, p := range partitions {
		s.unassigned[int(p.Partition)] = p.Offset
	}
	s.mu.Unlock()
	select {
	case s.lost <- why:
	default:
	}
}
