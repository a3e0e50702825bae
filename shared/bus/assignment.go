package bus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	kafka "github.com/segmentio/kafka-go"
)

// assignment is what one member of the group works on in one generation: partitions, each at a position under an epoch.
type assignment struct {
	consumer   *Consumer
	topic      topicID
	claims     map[int]*claimed
	partitions []int         // that have a claim, in order
	asked      chan struct{} // somebody wants parked records applied
	due        bool          // that was heard
	fresh      []int         // never consumed, and nobody leads them: where they start is not known
	intake     chan chunk
	room       *budget
	held       []chunk // taken from intake, not applied

	goals map[int]int64 // per partition, where the log ended when it was assigned, until it is applied so far

	mu        sync.Mutex
	committed map[int]int64 // positions that the Kafka group is to be told
}

// claimed is one partition of an assignment.
type claimed struct {
	next  int64 // as in the database
	epoch int64
	topic topicID
}

// run reads ahead and applies until ctx ends or the positions belong to somebody else.
func (a *assignment) run(ctx context.Context, generation *kafka.Generation) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel(nil)
	wg.Go(func() { cancel(a.follower().run(ctx)) })
	wg.Go(func() { a.reportOffsets(ctx, generation) })
	a.partitions = a.working()
	wg.Go(func() { a.lookForReplays(ctx) })
	if len(a.fresh) > 0 {
		wg.Go(func() { cancel(a.awaitLeaders(ctx)) })
	}
	for {
		records, reached, err := a.collect(ctx)
		if err == nil {
			err = a.apply(ctx, records)
		}
		if err == nil && a.replaysDue() {
			err = a.replay(ctx)
		}
		if err != nil {
			return cmpErr(context.Cause(ctx), err)
		}
		a.arrived(reached)
	}
}

// cmpErr prefers the reason for which everything was stopped; an orderly end is none.
func cmpErr(cause, err error) error {
	if cause != nil {
		err = cause
	}
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func (a *assignment) follower() *follower {
	c := a.consumer
	positions := make(map[int]int64, len(a.claims))
	for p, claim := range a.claims {
		positions[p] = claim.next
	}
	return &follower{
		cluster: c.cluster, logger: c.logger, topic: c.cfg.Topic, id: a.topic, positions: positions, wait: c.cfg.FetchWait,
		maxBytes: min(c.cfg.MaxBytes, c.cfg.BufferBytes), deliver: a.receive, outside: a.outside,
	}
}

// receive takes a chunk in when there is room.
func (a *assignment) receive(ctx context.Context, c chunk) error {
	if err := a.room.take(ctx, c.bytes+1); err != nil {
		return err
	}
	select {
	case a.intake <- c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// outside stops a partition for good: going on anywhere else would lose records or apply them twice.
func (a *assignment) outside(ctx context.Context, partition int, position int64, log logBounds) (int64, bool) {
	err := fmt.Errorf("%w: at %d, log from %d to %d", ErrOutsideLog, position, log.start, log.end)
	if log.replaced {
		err = fmt.Errorf("%w: at %d of the one before", ErrTopicReplaced, position)
	}
	if writing := a.consumer.halt(ctx, partition, a.claims[partition].epoch, err); writing != nil {
		a.consumer.logger.Error("cannot write down that a partition is stopped", "partition", partition, "error", writing)
	}
	return 0, false
}

// awaitLeaders returns when a partition that could not be claimed has a leader: then all are claimed again.
func (a *assignment) awaitLeaders(ctx context.Context) error {
	c := a.consumer
	for failures := 1; ctx.Err() == nil; failures++ {
		pause(ctx, backoff(failures, 100*time.Millisecond, 2*time.Second))
		if logs, err := c.cluster.logs(ctx, c.cfg.Topic, a.fresh); err == nil && len(logs.bounds) > 0 {
			return errors.New("partitions have got a leader that were never consumed")
		}
	}
	return ctx.Err()
}

// collect waits for records and gathers them until there are enough of them or the first has waited long enough. reached is how
// far each partition is applied once they are.
func (a *assignment) collect(ctx context.Context) (records []Record, reached map[int]int64, err error) {
	cfg := a.consumer.cfg
	reached = make(map[int]int64)
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	bytes := 0
	for len(records) < cfg.MaxRecords && bytes < cfg.MaxBytes {
		c, err := a.nextChunk(ctx, timer, len(records) > 0)
		if err != nil {
			return nil, nil, err
		}
		if c == nil {
			break
		}
		a.see(*c)
		was := len(records)
		records, bytes = a.consume(c, records, bytes, reached)
		if was == 0 && len(records) > 0 {
			timer.Reset(cfg.MaxWait)
		}
		if len(records) == 0 && len(reached) > 0 {
			break // nothing but holes or an empty partition: worth knowing
		}
	}
	return records, reached, nil
}

// nextChunk returns nil when the time is over, which runs if begun, or when parked records are to be applied.
func (a *assignment) nextChunk(ctx context.Context, timer *time.Timer, begun bool) (*chunk, error) {
	if len(a.held) > 0 {
		return &a.held[0], nil
	}
	over, asked := timer.C, (<-chan struct{})(nil)
	if !begun {
		over, asked = nil, a.asked
	}
	select {
	case c := <-a.intake:
		a.held = append(a.held, c)
		return &a.held[0], nil
	case <-over:
		return nil, nil
	case <-asked:
		a.due = true
		return nil, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// replaysDue reports, once, whether parked records are to be applied.
func (a *assignment) replaysDue() bool {
	select {
	case <-a.asked:
		a.due = true
	default:
	}
	due := a.due
	a.due = false
	return due
}

// consume moves records out of the held chunk as far as the limits allow.
func (a *assignment) consume(c *chunk, records []Record, bytes int, reached map[int]int64) ([]Record, int) {
	cfg := a.consumer.cfg
	n := 0
	for n < len(c.records) && len(records) < cfg.MaxRecords && (bytes == 0 || bytes+c.records[n].size() <= cfg.MaxBytes) {
		bytes += c.records[n].size()
		records = append(records, c.records[n])
		n++
	}
	if c.records = c.records[n:]; len(c.records) > 0 {
		return records, max(bytes, cfg.MaxBytes) // what did not fit ends the batch
	}
	reached[c.partition] = c.next
	a.room.give(c.bytes + 1)
	a.held = a.held[:0]
	return records, bytes
}

// see notes what a chunk tells about the end of the log.
func (a *assignment) see(c chunk) {
	a.consumer.note(func() { a.consumer.reach[c.partition] = reach{a.claims[c.partition].next, c.highWatermark} })
	if goal, ok := a.goals[c.partition]; ok && goal < 0 {
		a.goals[c.partition] = c.highWatermark
	}
}

// arrived notes how far partitions are applied, and whether that is as far as they reached at first.
func (a *assignment) arrived(reached map[int]int64) {
	a.consumer.applied(reached)
	if len(a.goals) == 0 {
		return
	}
	for p, next := range reached {
		if goal, ok := a.goals[p]; ok && goal >= 0 && next >= goal {
			delete(a.goals, p)
		}
	}
	if len(a.goals) == 0 {
		a.consumer.note(func() { a.consumer.caughtUp = true })
	}
}

// reportOffsets tells the Kafka group how far it is, for tools that show lag. Nobody depends on it.
func (a *assignment) reportOffsets(ctx context.Context, generation *kafka.Generation) {
	for ctx.Err() == nil {
		pause(ctx, time.Second)
		if offsets := a.unreported(); len(offsets) > 0 {
			if err := generation.CommitOffsets(map[string]map[int]int64{a.consumer.cfg.Topic: offsets}); err != nil {
				a.consumer.logger.Debug("cannot report offsets", "error", err)
			}
		}
	}
}

func (a *assignment) unreported() map[int]int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	offsets := a.committed
	a.committed = make(map[int]int64)
	return offsets
}
