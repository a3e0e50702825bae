package consumer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	kafka "github.com/segmentio/kafka-go"
	"go.opentelemetry.io/otel/trace"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer/internal/deferred"
	"github.com/weirlog/weir/shared/bus/consumer/internal/lanes"
	"github.com/weirlog/weir/shared/bus/consumer/internal/positions"
	"github.com/weirlog/weir/shared/bus/consumer/internal/status"
	"github.com/weirlog/weir/shared/bus/consumer/internal/transaction"
	"github.com/weirlog/weir/shared/bus/internal/broker"
	"github.com/weirlog/weir/shared/bus/internal/clock"
	"github.com/weirlog/weir/shared/bus/internal/follow"
	"github.com/weirlog/weir/shared/bus/internal/wire"
	"github.com/weirlog/weir/shared/lifecycle"
)

// assignment is a group member's work in one generation: partitions,
// each at a position under an epoch.
type assignment struct {
	consumer   *Consumer
	topic      wire.TopicID
	claims     map[int]*positions.Position
	partitions []int         // the claimed ones, in order
	asked      chan struct{} // a replay of parked records is requested
	again      chan error    // why all partitions are to be claimed again
	due        bool          // asked was received
	fresh      []int         // never consumed, and without a leader: the start is unknown
	input      *follow.Buffer
	backlogs   lanes.Backlogs
	turns      *lanes.Turns
	ahead      *ahead
	reader     *deferred.Reader
	limit      *lanes.BatchLimit // for transactions in the order of the log
	recent     *lanes.Usage      // of those transactions
	begun      time.Time         // when the last of them began
	tx         *transaction.Runner
	goals      status.Goals
	offsets    *groupOffsets
	wg         sync.WaitGroup
}

// run reads ahead and applies until ctx ends or another member
// takes the positions.
func (a *assignment) run(ctx context.Context, generation *kafka.Generation) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer a.reader.Close()
	defer a.wg.Wait()
	defer cancel(nil)
	a.wg.Go(func() { cancel(a.follower().Run(ctx)) })
	a.wg.Go(func() { a.commitOffsets(ctx, generation) })
	a.partitions = a.working()
	a.wg.Go(func() { a.lookForReplays(ctx) })
	a.wg.Go(func() { a.watchEnds(ctx) })
	a.wg.Go(func() { a.reportBacklog(ctx) })
	a.wg.Go(func() {
		select {
		case why := <-a.again:
			cancel(why)
		case <-ctx.Done():
		}
	})
	if len(a.fresh) > 0 {
		a.wg.Go(func() { cancel(a.awaitLeaders(ctx)) })
	}
	for {
		if err := a.runOnce(ctx); err != nil {
			return cmpErr(context.Cause(ctx), err)
		}
	}
}

// runOnce applies the next records of the log, then parked records to
// replay, then one lane's backlog.
func (a *assignment) runOnce(ctx context.Context) error {
	g, err := a.collect(ctx)
	if err == nil {
		err = a.applyGathered(ctx, g)
	}
	if err == nil && a.replaysDue() {
		if err = a.resumeCleared(ctx); err == nil {
			err = a.replay(ctx)
		}
	}
	if err == nil {
		err = a.serve(ctx)
	}
	return err
}

func (a *assignment) applyGathered(ctx context.Context, g *lanes.Gathering) error {
	begun := clock.Now()
	if err := a.apply(ctx, g.Work); err != nil {
		return err
	}
	if c := a.consumer; c.cfg.Lanes.Of != nil && len(g.Records) > 0 {
		a.limit.Learn(a.tx.Spent, c.cfg.Lanes.TargetAfter(begun.Sub(g.Records[0].Time)), g.Taken(), g.Limit(), c.maxBatch())
	}
	if len(g.Records) > 0 {
		a.begun = begun
		a.recent.Remember(g)
	}
	a.arrived(g.Reached)
	return nil
}

// cmpErr prefers the reason why everything was stopped; an orderly
// end has none.
func cmpErr(cause, err error) error {
	if cause != nil {
		err = cause
	}
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func (a *assignment) follower() *follow.Follower {
	c := a.consumer
	from := make(map[int]int64, len(a.claims))
	for p, claim := range a.claims {
		from[p] = claim.Next
	}
	return &follow.Follower{
		Cluster: c.cluster, Logger: c.logger, Topic: c.cfg.Topic, ID: a.topic, Positions: from, Wait: c.cfg.FetchWait,
		MaxBytes: min(c.cfg.MaxBytes, c.cfg.BufferBytes), Deliver: a.receive, Outside: a.outside, AtEnd: c.status.Reach.Fetched,
	}
}

// outside stops a partition for good: to continue elsewhere would lose
// records or apply them twice.
func (a *assignment) outside(ctx context.Context, partition int, position int64, log broker.LogBounds) (int64, bool) {
	if why := outsideLog(position, log); a.consumer.cfg.Rereads && !log.Gone && bus.IsLostEnd(why) {
		a.reclaim(why)
		return 0, false
	}
	a.stop(ctx, partition, outsideLog(position, log))
	return 0, false
}

// reclaim ends the assignment, so that its partitions are claimed again.
func (a *assignment) reclaim(why error) {
	select {
	case a.again <- why:
	default:
	}
}

// stop stops a partition, and writes down why.
func (a *assignment) stop(ctx context.Context, partition int, why error) {
	if writing := a.consumer.halt(ctx, partition, a.claims[partition].Epoch, why); writing != nil {
		a.consumer.logger.Error("cannot write down that a partition is stopped", "partition", partition, "error", writing)
	}
}

// outsideLog returns why a position can't continue in a log; nil: it can.
func outsideLog(position int64, log broker.LogBounds) error {
	switch {
	case log.Replaced:
		return fmt.Errorf("%w: at %d of the one before", bus.ErrTopicReplaced, position)
	case position > log.End:
		return fmt.Errorf("%w: %w: at %d, log from %d to %d", bus.ErrOutsideLog, bus.ErrEndLost, position, log.Start, log.End)
	case position < log.Start:
		return fmt.Errorf("%w: at %d, log from %d to %d", bus.ErrOutsideLog, position, log.Start, log.End)
	}
	return nil
}

// awaitLeaders returns once an unclaimed partition has a leader: then
// all are claimed again.
func (a *assignment) awaitLeaders(ctx context.Context) error {
	c := a.consumer
	for failures := 1; ctx.Err() == nil; failures++ {
		lifecycle.Pause(ctx, clock.Backoff(failures, 100*time.Millisecond, 2*time.Second))
		if logs, err := c.cluster.Logs(ctx, c.cfg.Topic, a.fresh); err == nil && len(logs.Bounds) > 0 {
			return errors.New("partitions have got a leader that were never consumed")
		}
	}
	return ctx.Err()
}

// replaysDue reports, once, whether parked records are to be replayed.
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

// see notes that a chunk is next.
func (a *assignment) see(c follow.Chunk) {
	a.consumer.status.Reach.Applied(map[int]int64{c.Partition: a.claims[c.Partition].Next})
	a.goals.Seen(c.Partition, c.HighWatermark)
}

// arrived notes how far partitions are read.
func (a *assignment) arrived(reached map[int]int64) {
	a.consumer.status.Reach.Applied(reached)
	a.goals.Reached(reached)
	a.settle()
}

// settle notes when the partitions have reached their first ends.
func (a *assignment) settle() {
	if a.goals.Open() && a.goals.Met(a.backlogs) {
		a.consumer.status.Reach.CatchUp()
	}
}

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

// apply applies or parks all of w, in order. It fails only when
// the assignment ends.
func (a *assignment) apply(ctx context.Context, w lanes.Work) error {
	if w.Empty() || a.through(w) {
		return nil
	}
	err := a.tx.Run(ctx, a.moverOf(w), w, a.consumer.handle)
	if err == nil {
		if len(w.Records) > 0 {
			a.consumer.metrics.Took(trace.ContextWithSpanContext(ctx, a.tx.Span), w, clock.Now())
			a.consumer.cfg.Committed(w.Records)
		}
		return nil
	}
	var blame *bus.PermanentError
	if !errors.As(err, &blame) {
		return err
	}
	if len(w.Records) == 1 {
		return a.park(ctx, w, blame.Err)
	}
	return a.divide(ctx, w, blame)
}

// through reports whether the earlier part of divided work went to the
// end of its lane's range.
func (a *assignment) through(w lanes.Work) bool {
	if w.Lane == nil || len(w.Records) > 0 {
		return false
	}
	b, behind := a.backlogs[*w.Lane]
	return !behind || b.Next >= w.Until
}

// divide applies smaller groups: around the record at fault if it is
// known, else halves.
func (a *assignment) divide(ctx context.Context, w lanes.Work, blame *bus.PermanentError) error {
	low, high := len(w.Records)/2, len(w.Records)/2
	for i, r := range w.Records {
		if blame.Record && r.Partition == blame.Partition && r.Offset == blame.Offset {
			low, high = i, i+1
		}
	}
	for _, part := range w.Divided(low, high) {
		if err := a.apply(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

func (c *Consumer) handle(ctx context.Context, tx pgx.Tx, records []bus.Record) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &bus.PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	if !c.cfg.Fillers {
		records = withoutFillers(records)
	}
	if len(records) == 0 {
		return nil
	}
	return c.cfg.Handle(ctx, tx, records)
}

func withoutFillers(records []bus.Record) []bus.Record {
	if !slices.ContainsFunc(records, bus.Record.IsFiller) {
		return records
	}
	return slices.DeleteFunc(slices.Clone(records), bus.Record.IsFiller)
}
