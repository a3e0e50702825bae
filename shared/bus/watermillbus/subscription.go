package watermillbus

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	kafka "github.com/segmentio/kafka-go"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/broker"
	"github.com/weirlog/weir/shared/bus/internal/clock"
	"github.com/weirlog/weir/shared/bus/internal/follow"
	"github.com/weirlog/weir/shared/bus/internal/wire"
	"github.com/weirlog/weir/shared/lifecycle"
)

// subscription is one call of Subscribe.
type subscription struct {
	subscriber *Subscriber
	cluster    *broker.Cluster
	topic      string
	logger     *slog.Logger
	out        chan *message.Message

	mu       sync.Mutex
	underWay map[int]*message.Message // per partition, handed out in a generation that ended before it was acknowledged or refused
}

func (s *subscription) run(ctx context.Context) {
	defer close(s.out)
	defer s.cluster.Close()
	if s.subscriber.cfg.Group == "" {
		s.runAlone(ctx)
	} else {
		s.runInGroup(ctx)
	}
}

// runInGroup works on the group's assignments, generation by generation.
func (s *subscription) runInGroup(ctx context.Context) {
	cfg := s.subscriber.cfg
	broker.AwaitTopic(ctx, s.cluster, s.topic, s.logger)
	group, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID: cfg.Group, Brokers: cfg.Brokers, Topics: []string{s.topic}, Dialer: cfg.Dialer,
		HeartbeatInterval: cfg.HeartbeatInterval, SessionTimeout: cfg.SessionTimeout, RebalanceTimeout: cfg.RebalanceTimeout,
		JoinGroupBackoff: cfg.JoinBackoff, WatchPartitionChanges: true, PartitionWatchInterval: cfg.PartitionWatch,
		StartOffset: kafka.FirstOffset, Timeout: broker.RequestTimeout / 2,
	})
	if err != nil {
		s.logger.Error("cannot join the group", "error", err)
		return
	}
	defer group.Close()
	for ctx.Err() == nil {
		broker.AwaitTopic(ctx, s.cluster, s.topic, s.logger)
		generation, err := group.Next(ctx)
		if err != nil {
			s.logger.Debug("not in the group yet", "error", err)
			continue // kafka-go waits JoinBackoff by itself
		}
		s.serve(ctx, generation)
	}
}

// serve delivers until the generation ends. It commits acknowledgements
// as a member, so that the brokers refuse those of a fenced one.
func (s *subscription) serve(ctx context.Context, generation *kafka.Generation) {
	done := make(chan struct{})
	generation.Start(func(member context.Context) {
		defer close(done)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(member, cancel)()
		at, err := s.places(ctx, generation.Assignments[s.topic])
		if err != nil {
			s.logger.Warn("cannot begin", "error", err)
			lifecycle.Pause(ctx, s.subscriber.cfg.JoinBackoff)
			return
		}
		acks := newAcknowledgements(at.topic)
		reported := make(chan struct{})
		go func() {
			defer close(reported)
			acks.report(ctx, s, generation)
		}()
		s.deliver(ctx, at, acks)
		cancel()
		<-reported
	})
	<-done
}

// places returns the group's committed positions; without any, the
// start of the log.
func (s *subscription) places(ctx context.Context, assigned []kafka.PartitionAssignment) (places, error) {
	next := make(map[int]int64)
	var fresh []int
	for _, a := range assigned {
		next[a.ID] = a.Offset
		if a.Offset < 0 {
			fresh = append(fresh, a.ID)
		}
	}
	found, err := s.cluster.AllLogs(ctx, s.topic, fresh)
	for p, log := range found.Bounds {
		next[p] = log.Start
	}
	return places{found.ID, next}, err
}

// runAlone delivers all partitions from their start, also those added later.
func (s *subscription) runAlone(ctx context.Context) {
	at := places{next: make(map[int]int64)}
	for failures := 1; ctx.Err() == nil; {
		if err := s.discover(ctx, &at); err != nil {
			s.logger.Debug("cannot begin yet", "error", err)
			lifecycle.Pause(ctx, clock.Backoff(failures, 50*time.Millisecond, 2*time.Second))
			failures++
			continue
		}
		session, cancel := context.WithCancel(ctx)
		var wg sync.WaitGroup
		wg.Go(func() { s.watch(session, cancel, len(at.next)) })
		acks := newAcknowledgements(at.topic)
		s.deliver(session, at, acks)
		cancel()
		wg.Wait()
		at.advance(acks.take())
	}
}

// places are positions in the partitions of one topic. They mean
// nothing in another topic of its name.
type places struct {
	topic wire.TopicID
	next  map[int]int64
}

// advance takes later places; those in another topic replace all.
func (p *places) advance(later places) {
	if later.topic != p.topic {
		*p = later
		return
	}
	maps.Copy(p.next, later.next)
}

// discover adds the start of each partition that has no place yet.
func (s *subscription) discover(ctx context.Context, at *places) error {
	seen, err := s.cluster.Layout(ctx, s.topic)
	if err == nil {
		err = seen.Topics[s.topic].Err
	}
	if err != nil {
		return err
	}
	var fresh []int
	for p := range seen.Topics[s.topic].Leaders {
		if _, known := at.next[p]; !known {
			fresh = append(fresh, p)
		}
	}
	found, err := s.cluster.AllLogs(ctx, s.topic, fresh)
	if err != nil {
		return err
	}
	if len(at.next) > 0 && found.ID != at.topic {
		return s.leave(ctx, at)
	}
	at.topic = found.ID
	for p, log := range found.Bounds {
		at.next[p] = log.Start
	}
	return nil
}

// leave drops the places in a deleted topic. A broker that is behind
// may have reported it too early.
func (s *subscription) leave(ctx context.Context, at *places) error {
	replaced, err := s.cluster.Replaced(ctx, s.topic, at.topic)
	if err == nil && replaced {
		s.logger.Error("the topic was deleted and made again, going on from its start", "partitions", len(at.next))
		*at = places{next: make(map[int]int64)}
	}
	return cmp.Or(err, bus.ErrTopicReplaced)
}

// watch ends a session when there are more than n partitions.
func (s *subscription) watch(ctx context.Context, end context.CancelFunc, n int) {
	for ctx.Err() == nil {
		lifecycle.Pause(ctx, s.subscriber.cfg.PartitionWatch)
		if seen, err := s.cluster.Layout(ctx, s.topic); err == nil && len(seen.Topics[s.topic].Leaders) > n {
			end()
		}
	}
}

// deliver reads partitions from the given places and hands their
// messages out, until ctx ends.
func (s *subscription) deliver(ctx context.Context, at places, acks *acknowledgements) {
	lanes := make(map[int]chan follow.Chunk, len(at.next))
	var wg sync.WaitGroup
	for p := range at.next {
		lane := make(chan follow.Chunk, 1)
		lanes[p] = lane
		wg.Go(func() { s.drain(ctx, p, lane, acks) })
	}
	f := &follow.Follower{
		Cluster: s.cluster, Logger: s.logger, Topic: s.topic, ID: at.topic, Positions: maps.Clone(at.next), Wait: 500 * time.Millisecond,
		MaxBytes: s.subscriber.cfg.MaxBytes,
		Deliver: func(ctx context.Context, c follow.Chunk) error {
			if len(c.Records) == 0 {
				return nil
			}
			select {
			case lanes[c.Partition] <- c:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		},
		Outside: func(_ context.Context, partition int, position int64, log broker.LogBounds) (int64, bool) {
			return s.outside(partition, position, log, acks), true
		},
	}
	if err := f.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
		s.logger.Debug("reading ended", "error", err)
	}
	wg.Wait()
}

// outside continues at the start of the log, also of a replaced topic,
// and logs it: lost messages stay lost.
func (s *subscription) outside(partition int, position int64, log broker.LogBounds, acks *acknowledgements) (next int64) {
	s.logger.Error("position outside the log, going on from its start", "partition", partition, "position", position, "start", log.Start, "end", log.End,
		"replaced", log.Replaced)
	if log.Replaced {
		acks.moveTo(log.Topic)
	}
	return log.Start
}

// drain hands out the messages of one partition one by one.
func (s *subscription) drain(ctx context.Context, partition int, lane <-chan follow.Chunk, acks *acknowledgements) {
	done, over := s.awaitUnderWay(ctx, partition)
	if over {
		return
	}
	for {
		select {
		case c := <-lane:
			for _, r := range c.Records {
				if originOf(r) != done && !s.hand(ctx, r) {
					return
				}
				acks.note(c.Topic, r.Partition, r.Offset+1)
			}
		case <-ctx.Done():
			return
		}
	}
}

// awaitUnderWay waits for a partition's message that a handler of this
// subscription still has, so that a rebalance hands out no second one.
// It returns that message's place if it was acknowledged.
func (s *subscription) awaitUnderWay(ctx context.Context, partition int) (done Origin, over bool) {
	s.mu.Lock()
	m := s.underWay[partition]
	s.mu.Unlock()
	if m == nil {
		return Origin{}, false
	}
	acked, over := settled(ctx, m)
	if over {
		return Origin{}, true
	}
	s.leaveUnderWay(partition, nil)
	if acked {
		done = OriginOf(m)
	}
	return done, false
}

func (s *subscription) leaveUnderWay(partition int, m *message.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.underWay == nil {
		s.underWay = make(map[int]*message.Message)
	}
	if s.underWay[partition] = m; m == nil {
		delete(s.underWay, partition)
	}
}

func originOf(r bus.Record) Origin {
	return Origin{r.Topic, bus.Position{Partition: r.Partition, Offset: r.Offset}, r.Time}
}

// hand gives out one message until it is acknowledged. It returns false
// if ctx ended before.
func (s *subscription) hand(ctx context.Context, r bus.Record) bool {
	origin := context.WithValue(ctx, originKey{}, originOf(r))
	for {
		m := bus.NewMessage(r)
		own, done := context.WithCancel(origin)
		m.SetContext(own)
		acked, over := s.offer(ctx, r.Partition, m)
		done()
		if acked || over {
			return acked
		}
		lifecycle.Pause(ctx, s.subscriber.cfg.NackPause)
	}
}

// offer gives out one message once.
func (s *subscription) offer(ctx context.Context, partition int, m *message.Message) (acked, over bool) {
	select {
	case s.out <- m:
	case <-ctx.Done():
		return false, true
	}
	if acked, over = settled(ctx, m); over {
		s.leaveUnderWay(partition, m)
	}
	return acked, over
}

// settled waits until a message is acknowledged or refused. over:
// ctx ended before.
func settled(ctx context.Context, m *message.Message) (acked, over bool) {
	select {
	case <-m.Acked():
		return true, false
	case <-m.Nacked():
		return false, false
	case <-ctx.Done():
		return false, true
	}
}
