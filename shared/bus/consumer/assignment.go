package consumer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	kafka "github.com/segmentio/kafka-go"
	"go.opentelemetry.io/otel/trace"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer/internal/lanes"
	"github.com/weirlog/weir/shared/bus/consumer/internal/positions"
	"github.com/weirlog/weir/shared/bus/consumer/internal/status"
	"github.com/weirlog/weir/shared/bus/consumer/internal/transaction"
	"github.com/weirlog/weir/shared/bus/internal/broker"
	"github.com/weirlog/weir/shared/bus/internal/clock"
	"github.com/weirlog/weir/shared/bus/internal/follow"
)

// assignment is a group member's work in one generation: partitions,
// each at a position under an epoch.
type assignment struct {
	consumer *Consumer
	log      *logWatcher
	claims   map[int]*positions.Position
	again    chan error // why all partitions are to be claimed again
	input    *follow.Buffer
	pace     pace
	tx       *transaction.Runner
	backlogs *backlogs
	ahead    *ahead
	replays  *replays
	progress *progress
	wg       sync.WaitGroup
}

// run reads ahead and applies until ctx ends or another member
// takes the positions.
func (a *assignment) run(ctx context.Context, generation *kafka.Generation) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer a.ahead.close()
	defer a.wg.Wait()
	defer cancel(nil)
	a.wg.Go(func() { cancel(a.follower().Run(ctx)) })
	a.wg.Go(func() { a.consumer.commitOffsets(ctx, a.progress.offsets, generation) })
	a.replays.partitions = slices.Sorted(maps.Keys(a.claims))
	a.wg.Go(func() { a.replays.look(ctx) })
	a.wg.Go(func() { a.log.watchEnds(ctx) })
	a.wg.Go(func() { a.log.reportBacklog(ctx) })
	a.wg.Go(func() {
		select {
		case why := <-a.again:
			cancel(why)
		case <-ctx.Done():
		}
	})
	if len(a.log.fresh) > 0 {
		a.wg.Go(func() { cancel(a.log.awaitLeaders(ctx)) })
	}
	for {
		if err := a.runOnce(ctx); err != nil {
			return cmpErr(context.Cause(ctx), err)
		}
	}
}

// A pace is how much a transaction takes in the order of the log, and when.
type pace struct {
	limit  *lanes.BatchLimit
	recent *lanes.Usage // of those transactions
	begun  time.Time    // when the last of them began
}

// learn notes a transaction that was applied.
func (p *pace) learn(g *lanes.Gathering, spent lanes.Timing, begun time.Time, c *Consumer) {
	if c.cfg.Lanes.Of != nil {
		p.limit.Learn(spent, c.cfg.Lanes.TargetAfter(begun.Sub(g.Records[0].Time)), g.Taken(), g.Limit(), c.maxBatch())
	}
	p.begun = begun
	p.recent.Remember(g)
}

// wait returns how long the first record of a transaction waits for others.
func (p *pace) wait(longest time.Duration) time.Duration {
	return max(longest/10, longest-clock.Now().Sub(p.begun))
}

// progress is how far the partitions are read.
type progress struct {
	reach    *status.Reach
	goals    status.Goals
	backlogs *backlogs
	offsets  *groupOffsets
}

// see notes that a chunk is next, at a position.
func (p *progress) see(c follow.Chunk, next int64) {
	p.reach.Applied(map[int]int64{c.Partition: next})
	p.goals.Seen(c.Partition, c.HighWatermark)
}

// arrived notes how far partitions are read.
func (p *progress) arrived(reached map[int]int64) {
	p.reach.Applied(reached)
	p.goals.Reached(reached)
	p.settle()
}

// settle notes when the partitions have reached their first ends.
func (p *progress) settle() {
	if p.goals.Open() && p.goals.Met(p.backlogs.all) {
		p.reach.CatchUp()
	}
}

// runOnce applies the next records of the log, then parked records to
// replay, then one lane's backlog.
func (a *assignment) runOnce(ctx context.Context) error {
	g, err := a.collect(ctx)
	if err == nil {
		err = a.applyGathered(ctx, g)
	}
	if err == nil && a.replays.isDue() {
		if err = a.backlogs.resumeCleared(ctx, a.replays.partitions); err == nil {
			err = a.replays.run(ctx)
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
	if len(g.Records) > 0 {
		a.pace.learn(g, a.tx.Spent, begun, a.consumer)
	}
	a.progress.arrived(g.Reached)
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
	gather := c.cfg.MaxWait + c.cfg.MaxWait/10 // longer than pace.wait, so that what was gathered waits no second time
	return &follow.Follower{
		Cluster: c.cluster, Logger: c.logger, Topic: c.cfg.Topic, ID: a.log.topic, Positions: from, Wait: c.cfg.FetchWait, Gather: gather,
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

// deferringWait is how long deferred records wait for more.
const deferringWait = 50 * time.Millisecond

// maxBatch returns the limits of a transaction.
func (c *Consumer) maxBatch() lanes.Amount {
	return lanes.Amount{Records: c.cfg.MaxRecords, Cost: cmp.Or(c.cfg.Lanes.MaxCost, c.cfg.MaxBytes), Bytes: c.cfg.MaxBytes}
}

// collect gathers records until there are enough or the first has
// waited long enough. It does not wait while lanes wait for a turn.
func (a *assignment) collect(ctx context.Context) (*lanes.Gathering, error) {
	c := a.consumer
	g := lanes.NewGathering(c.cfg.Lanes, a.pace.limit.Limit(c.maxBatch()), a.pace.recent, a.backlogs.all, a.backlogs.turns)
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	for !g.Full {
		chunk, err := a.nextChunk(ctx, timer, g.Begun())
		if err != nil {
			return nil, err
		}
		if chunk == nil {
			break
		}
		a.progress.see(*chunk, a.claims[chunk.Partition].Next)
		records, begun := len(g.Records), g.Begun()
		if a.input.Took(g.Take(chunk.Records)) {
			g.Reached[chunk.Partition] = chunk.Next
		}
		switch {
		case records == 0 && len(g.Records) > 0:
			timer.Reset(a.pace.wait(c.cfg.MaxWait))
		case !begun && g.Begun():
			timer.Reset(max(a.pace.wait(c.cfg.MaxWait), deferringWait))
		}
		if !g.Begun() && len(g.Reached) > 0 {
			break // only holes or an empty partition: worth noting
		}
	}
	return g, nil
}

// nextChunk returns nil if the time is over (it runs if begun), if
// parked records are to be replayed, or if a lane's turn is due and
// nothing has come.
func (a *assignment) nextChunk(ctx context.Context, timer *time.Timer, begun bool) (*follow.Chunk, error) {
	over, asked := timer.C, (<-chan struct{})(nil)
	if !begun {
		over, asked = nil, a.replays.asked
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
	case s := <-a.ahead.results:
		a.ahead.done(s)
		return nil, nil
	case <-over:
		return nil, nil
	case <-asked:
		a.replays.due = true
		return nil, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// apply applies or parks all of w, in order. It fails only when
// the assignment ends.
func (a *assignment) apply(ctx context.Context, w lanes.Work) error {
	if w.Empty() || a.backlogs.through(w) {
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
