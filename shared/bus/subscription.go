package bus

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	kafka "github.com/segmentio/kafka-go"
)

// subscription is one call of Subscribe.
type subscription struct {
	subscriber *Subscriber
	cluster    *cluster
	topic      string
	logger     *slog.Logger
	out        chan *message.Message

	mu       sync.Mutex
	underWay map[int]*message.Message // per partition, handed out in a generation that ended before somebody said what became of it
}

func (s *subscription) run(ctx context.Context) {
	defer close(s.out)
	defer s.cluster.close()
	if s.subscriber.cfg.Group == "" {
		s.runAlone(ctx)
	} else {
		s.runInGroup(ctx)
	}
}

// runInGroup works on what the group assigns, generation after generation.
func (s *subscription) runInGroup(ctx context.Context) {
	cfg := s.subscriber.cfg
	awaitTopic(ctx, s.cluster, s.topic, s.logger)
	group, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID: cfg.Group, Brokers: cfg.Brokers, Topics: []string{s.topic}, Dialer: cfg.Dialer,
		HeartbeatInterval: cfg.HeartbeatInterval, SessionTimeout: cfg.SessionTimeout, RebalanceTimeout: cfg.RebalanceTimeout,
		JoinGroupBackoff: cfg.JoinBackoff, WatchPartitionChanges: true, PartitionWatchInterval: cfg.PartitionWatch,
		StartOffset: kafka.FirstOffset, Timeout: requestTimeout / 2,
	})
	if err != nil {
		s.logger.Error("cannot join the group", "error", err)
		return
	}
	defer group.Close()
	for ctx.Err() == nil {
		awaitTopic(ctx, s.cluster, s.topic, s.logger)
		generation, err := group.Next(ctx)
		if err != nil {
			s.logger.Debug("not in the group yet", "error", err)
			continue // kafka-go waits JoinBackoff by itself
		}
		s.serve(ctx, generation)
	}
}

// serve delivers until the generation ends. Acknowledgements are reported as its member, so that the brokers refuse those of a
// member that lost its partitions.
func (s *subscription) serve(ctx context.Context, generation *kafka.Generation) {
	done := make(chan struct{})
	generation.Start(func(member context.Context) {
		defer close(done)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(member, cancel)()
		positions, id, err := s.positions(ctx, generation.Assignments[s.topic])
		if err != nil {
			s.logger.Warn("cannot begin", "error", err)
			pause(ctx, s.subscriber.cfg.JoinBackoff)
			return
		}
		acks := &acknowledgements{next: make(map[int]int64)}
		reported := make(chan struct{})
		go func() {
			defer close(reported)
			acks.report(ctx, s, generation)
		}()
		s.deliver(ctx, id, positions, acks)
		cancel()
		<-reported
	})
	<-done
}

// positions are where the group left off, in which topic; where it never was, the start of the log.
func (s *subscription) positions(ctx context.Context, assigned []kafka.PartitionAssignment) (map[int]int64, topicID, error) {
	positions := make(map[int]int64)
	var fresh []int
	for _, a := range assigned {
		positions[a.ID] = a.Offset
		if a.Offset < 0 {
			fresh = append(fresh, a.ID)
		}
	}
	found, err := s.cluster.allLogs(ctx, s.topic, fresh)
	for p, log := range found.bounds {
		positions[p] = log.start
	}
	return positions, found.id, err
}

// runAlone delivers all partitions from their start, and those that are added later.
func (s *subscription) runAlone(ctx context.Context) {
	positions := make(map[int]int64)
	for failures := 1; ctx.Err() == nil; {
		added, id, err := s.discover(ctx, positions)
		if err != nil {
			s.logger.Debug("cannot begin yet", "error", err)
			pause(ctx, backoff(failures, 50*time.Millisecond, 2*time.Second))
			failures++
			continue
		}
		maps.Copy(positions, added)
		session, cancel := context.WithCancel(ctx)
		var wg sync.WaitGroup
		wg.Go(func() { s.watch(session, cancel, len(positions)) })
		acks := &acknowledgements{next: make(map[int]int64)}
		s.deliver(session, id, positions, acks)
		cancel()
		wg.Wait()
		maps.Copy(positions, acks.take())
	}
}

// discover finds the start of each partition that is not known yet.
func (s *subscription) discover(ctx context.Context, known map[int]int64) (map[int]int64, topicID, error) {
	seen, err := s.cluster.layout(ctx, s.topic)
	if err != nil {
		return nil, topicID{}, err
	}
	if err := seen.topics[s.topic].err; err != nil {
		return nil, topicID{}, err
	}
	var fresh []int
	for p := range seen.topics[s.topic].leaders {
		if _, ok := known[p]; !ok {
			fresh = append(fresh, p)
		}
	}
	added := make(map[int]int64)
	found, err := s.cluster.allLogs(ctx, s.topic, fresh)
	for p, log := range found.bounds {
		added[p] = log.start
	}
	return added, found.id, err
}

// watch ends a session when there are more than n partitions.
func (s *subscription) watch(ctx context.Context, end context.CancelFunc, n int) {
	for ctx.Err() == nil {
		pause(ctx, s.subscriber.cfg.PartitionWatch)
		if seen, err := s.cluster.layout(ctx, s.topic); err == nil && len(seen.topics[s.topic].leaders) > n {
			end()
		}
	}
}

// deliver reads partitions of the topic of that id from the given positions and hands their messages out, until ctx ends.
func (s *subscription) deliver(ctx context.Context, id topicID, positions map[int]int64, acks *acknowledgements) {
	lanes := make(map[int]chan chunk, len(positions))
	var wg sync.WaitGroup
	for p := range positions {
		lane := make(chan chunk, 1)
		lanes[p] = lane
		wg.Go(func() { s.drain(ctx, p, lane, acks) })
	}
	f := &follower{
		cluster: s.cluster, logger: s.logger, topic: s.topic, id: id, positions: maps.Clone(positions), wait: 500 * time.Millisecond,
		maxBytes: s.subscriber.cfg.MaxBytes,
		deliver: func(ctx context.Context, c chunk) error {
			if len(c.records) == 0 {
				return nil
			}
			select {
			case lanes[c.partition] <- c:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		},
		outside: s.outside,
	}
	if err := f.run(ctx); err != nil && !errors.Is(err, context.Canceled) {
		s.logger.Debug("reading ended", "error", err)
	}
	wg.Wait()
}

// outside goes on at the start of the log, loudly: a subscriber promises at least once, and what is gone is gone. So it does where
// the topic was deleted and made again.
func (s *subscription) outside(_ context.Context, partition int, position int64, log logBounds) (int64, bool) {
	s.logger.Error("position outside the log, going on from its start", "partition", partition, "position", position, "start", log.start, "end", log.end,
		"replaced", log.replaced)
	return log.start, true
}

// drain hands out the messages of one partition, one after the other.
func (s *subscription) drain(ctx context.Context, partition int, lane <-chan chunk, acks *acknowledgements) {
	done, over := s.awaitUnderWay(ctx, partition)
	if over {
		return
	}
	for {
		select {
		case c := <-lane:
			for _, r := range c.records {
				if originOf(r) != done && !s.hand(ctx, r) {
					return
				}
				acks.note(r.Partition, r.Offset+1)
			}
		case <-ctx.Done():
			return
		}
	}
}

// awaitUnderWay waits for what a handler of this subscription still has of a partition, so that a rebalance that leaves the partition
// here does not put a second message of it under way. It returns where the message came from if it was acknowledged.
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

func originOf(r Record) Origin { return Origin{r.Topic, Position{r.Partition, r.Offset}, r.Time} }

// hand gives out one message until it is acknowledged. It reports false when ctx ended before.
func (s *subscription) hand(ctx context.Context, r Record) bool {
	origin := context.WithValue(ctx, originKey{}, originOf(r))
	for {
		m := NewMessage(r)
		own, done := context.WithCancel(origin)
		m.SetContext(own)
		acked, over := s.offer(ctx, r.Partition, m)
		done()
		if acked || over {
			return acked
		}
		pause(ctx, s.subscriber.cfg.NackPause)
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

// settled waits until somebody says what became of a message. over: ctx ended before.
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

// acknowledgements are the offsets behind the last acknowledged message of each partition.
type acknowledgements struct {
	mu   sync.Mutex
	next map[int]int64
}

func (a *acknowledgements) note(partition int, next int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.next[partition] = next
}

func (a *acknowledgements) take() map[int]int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	next := a.next
	a.next = make(map[int]int64)
	return next
}

// report tells the group what was acknowledged, now and then and once more at the end.
func (a *acknowledgements) report(ctx context.Context, s *subscription, generation *kafka.Generation) {
	for over := false; !over; {
		pause(ctx, s.subscriber.cfg.CommitInterval)
		over = ctx.Err() != nil
		next := a.take()
		if len(next) == 0 {
			continue
		}
		if err := generation.CommitOffsets(map[string]map[int]int64{s.topic: next}); err != nil {
			s.logger.Warn("cannot report acknowledgements, some messages will come again", "error", err)
		}
	}
}
