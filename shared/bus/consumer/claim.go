package consumer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

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

// errNoLanes stops a partition: its position is after records that only
// lanes lead to.
var errNoLanes = errors.New("lanes have left records behind, and this consumer has no Lanes.Of to find them by")

// claim takes partitions over under new epochs, which fence their former
// members. A partition never consumed starts at the start of its log,
// after it has a leader; it is stopped if its log was cut. One whose
// position is outside its log, or in another log than was applied, is
// stopped too.
func (c *Consumer) claim(ctx context.Context, owner string, partitions []int) (*assignment, error) {
	logs, err := c.cluster.Logs(ctx, c.cfg.Topic, partitions)
	if err != nil {
		return nil, err
	}
	claimed, err := c.takeOver(ctx, positions.Claim{Owner: owner, Partitions: partitions, Logs: logs, AcceptLost: c.cfg.AcceptLost})
	if err != nil {
		return nil, err
	}
	behind := &backlogs{consumer: c, all: claimed.Backlogs, turns: lanes.NewTurns()}
	a := &assignment{
		consumer: c, claims: claimed.Positions, again: make(chan error, 1), input: follow.NewBuffer(c.cfg.BufferBytes),
		log:      &logWatcher{consumer: c, topic: logs.ID},
		pace:     pace{limit: lanes.NewBatchLimit(c.cfg.Lanes), recent: lanes.NewUsage()},
		tx:       &transaction.Runner{Store: c.store, Metrics: c.metrics, Tracer: c.cfg.Tracer, Logger: c.logger},
		backlogs: behind,
		ahead:    newAhead(deferred.NewReader(c.cluster, c.cfg.Topic, logs.ID, c.cfg.Lanes), behind),
		replays:  &replays{consumer: c, claims: claimed.Positions, asked: make(chan struct{}, 1)},
		progress: &progress{reach: c.status.Reach, goals: status.NewGoals(), backlogs: behind, offsets: newGroupOffsets()},
	}
	for p, err := range claimed.Halted {
		c.logger.Error("partition stays stopped until weir resume", "partition", p, "error", err)
	}
	c.status.Claim(claimed.Halted)
	for _, p := range behind.resume() {
		if a.claims[p] != nil {
			delete(a.claims, p)
			c.logger.Error("partition stopped", "partition", p, "error", errNoLanes)
			c.status.Halt(p, errNoLanes)
		}
	}
	return a, a.check(ctx, partitions, logs)
}

// check stops partitions that can't continue, and sets the goals of the others.
func (a *assignment) check(ctx context.Context, partitions []int, logs broker.TopicLogs) error {
	for _, p := range partitions {
		claim := a.claims[p]
		if claim == nil {
			if !a.consumer.status.IsHalted(p) {
				a.log.fresh = append(a.log.fresh, p)
				a.consumer.status.Lack(p)
				a.progress.goals.Add(p)
			}
			continue
		}
		log, known := logs.Bounds[p]
		if claim.Topic != logs.ID {
			if err := a.consumer.checkReplaced(ctx, claim.Topic); err != nil {
				return err
			}
			log.Replaced = true
		}
		why := outsideLog(claim.Next, log)
		if why == nil && known {
			if why = compare(ctx, a.ahead.reader, p, *claim, log); why != nil && !errors.Is(why, bus.ErrLogDiffers) {
				return why
			}
		}
		if why != nil && known && a.consumer.cfg.Rereads && bus.IsLostEnd(why) {
			if why = a.reread(ctx, p, log, logs.ID, why); why != nil {
				return why
			}
		}
		if why != nil && (known || log.Replaced) {
			a.stop(ctx, p, why)
			delete(a.claims, p)
			a.backlogs.drop(p)
			continue
		}
		a.consumer.status.Reach.Begin(p, claim.Next, log.End)
		a.progress.goals.Add(p)
	}
	return nil
}

// reread moves a claimed position to the start of its log.
func (a *assignment) reread(ctx context.Context, partition int, log broker.LogBounds, id wire.TopicID, why error) error {
	claim := a.claims[partition]
	a.consumer.logger.Warn("the log lost what was applied: reading it again from its start, and what its owner publishes again",
		"partition", partition, "position", claim.Next, "start", log.Start, "end", log.End, "error", why)
	if err := a.consumer.store.Restart(ctx, partition, claim.Epoch, log.Start, id); err != nil {
		return fmt.Errorf("cannot read partition %d again: %w", partition, err)
	}
	claim.Next, claim.Topic, claim.Last = log.Start, id, nil
	return nil
}

// checkReplaced fails unless the topic of an id was deleted for another one.
func (c *Consumer) checkReplaced(ctx context.Context, id wire.TopicID) error {
	replaced, err := c.cluster.Replaced(ctx, c.cfg.Topic, id)
	if err == nil && !replaced {
		err = fmt.Errorf("brokers do not agree which topic %q is", c.cfg.Topic)
	}
	return err
}

// takeOver waits for the rows until ctx ends: a stalled member may hold
// them until its session times out.
func (c *Consumer) takeOver(ctx context.Context, claim positions.Claim) (positions.Claimed, error) {
	for failures := 1; ; failures++ {
		claimed, err := c.store.Claim(ctx, claim)
		if err == nil || ctx.Err() != nil {
			return claimed, err
		}
		c.logger.Warn("cannot take the partitions over yet", "error", err)
		lifecycle.Pause(ctx, clock.Backoff(failures, 50*time.Millisecond, 2*time.Second))
	}
}

// halt stops a partition in the database and in Ready.
func (c *Consumer) halt(ctx context.Context, partition int, epoch int64, reason error) error {
	c.logger.Error("partition stopped", "partition", partition, "error", reason)
	c.status.Halt(partition, reason)
	if bus.IsLostEnd(reason) {
		_ = c.status.Log.Compared(c.damaged(partition, reason))
	}
	return c.store.Halt(ctx, partition, epoch, reason)
}

// wayOut is what an operator does about a log that lost records.
const wayOut = "stop all services and run weir resume, which shows what is lost and goes on from there"

const (
	compareRetry   = time.Second     // after a comparison that found no sound log
	compareTimeout = 5 * time.Second // of reading the positions
)

// A logWatch compares the group's positions with the log.
type logWatch struct {
	*Consumer

	cluster *broker.Cluster
	sound   bool // the last comparison found nothing
}

// WatchLog compares the group's positions with the log until ctx ends.
// It needs no Run.
func (c *Consumer) WatchLog(ctx context.Context) error {
	if c.cfg.Rereads {
		_ = c.status.Log.Compared(nil) // it goes on by itself
		<-ctx.Done()
		return nil
	}
	w := &logWatch{Consumer: c, cluster: broker.NewCluster(c.cfg.Brokers, c.cfg.Dialer)}
	for ctx.Err() == nil {
		w.runOnce(ctx)
		if w.sound {
			lifecycle.Pause(ctx, c.cfg.EndWatch)
		} else {
			lifecycle.Pause(ctx, compareRetry)
		}
	}
	return nil
}

// runOnce compares all positions with the log, and notes the result.
// Positions are read first: the log only grows meanwhile.
func (w *logWatch) runOnce(ctx context.Context) {
	all, err := w.positions(ctx)
	if err != nil {
		w.logger.Debug("cannot read the positions to compare with the log", "error", err)
		w.status.Log.NotCompared(nil)
		w.sound = false
		return
	}
	if w.sound && !slices.ContainsFunc(all, func(at positions.Stored) bool { return at.Halted != nil }) {
		return // who has a partition whose log loses its end from now on stops it
	}
	found, err := w.damage(ctx, all)
	if w.sound = found == nil && err == nil; err != nil {
		w.logger.Debug("cannot compare positions with the log", "error", err)
		w.status.Log.NotCompared(fmt.Errorf("cannot compare the positions of consumer %q with %q yet: %w", w.cfg.Group, w.cfg.Topic, err))
		return
	}
	if w.status.Log.Compared(found) {
		w.logger.Error("the log lacks what was applied", "error", found)
	}
}

func (w *logWatch) positions(ctx context.Context) ([]positions.Stored, error) {
	ctx, cancel := context.WithTimeout(ctx, compareTimeout)
	defer cancel()
	return w.store.All(ctx)
}

// damage returns why a position doesn't continue in the log. It fails
// if the log can't be read.
func (w *logWatch) damage(ctx context.Context, all []positions.Stored) (found, err error) {
	if len(all) == 0 {
		return nil, nil
	}
	logs, err := w.cluster.WholeTopic(ctx, w.cfg.Topic)
	if err != nil {
		return nil, err
	}
	reader := deferred.NewReader(w.cluster, w.cfg.Topic, logs.ID, lanes.Config{})
	defer reader.Close()
	for _, at := range all {
		log, known := logs.Bounds[at.Partition]
		log.Gone, log.Replaced = !known, at.Topic != wire.TopicID{} && at.Topic != logs.ID
		err := w.examine(ctx, reader, at, log)
		if bus.IsLostEnd(err) {
			return w.damaged(at.Partition, err), nil
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// examine compares one position with its log. Records that are gone from
// the start of a log are no damage: what comes next has other offsets.
func (w *logWatch) examine(ctx context.Context, reader *deferred.Reader, at positions.Stored, log broker.LogBounds) error {
	switch {
	case log.Gone:
		return fmt.Errorf("%w: at %d of a partition that is gone", bus.ErrEndLost, at.Next)
	case at.Next < log.Start && !log.Replaced:
		return nil
	case outsideLog(at.Next, log) != nil:
		return outsideLog(at.Next, log)
	case at.Halted == nil:
		return compare(ctx, reader, at.Partition, at.Position, log)
	case strings.HasPrefix(at.Halted.Error(), bus.ErrNeverRead.Error()):
		return nil
	}
	return fmt.Errorf("%w: it was stopped: %w", bus.ErrLogDiffers, at.Halted)
}

// damaged says which partition lost its end, and what to do.
func (c *Consumer) damaged(partition int, why error) error {
	return fmt.Errorf("consumer %q can't go on with partition %d of %q: %w: %s", c.cfg.Group, partition, c.cfg.Topic, why, wayOut)
}

// compare fails with ErrLogDiffers unless the last record before a
// position is in the log as it was applied. One that compaction or
// retention removed, or a filler stands for, can't be compared.
func compare(ctx context.Context, reader *deferred.Reader, partition int, at positions.Position, log broker.LogBounds) error {
	if at.Last == nil || at.Last.Offset >= at.Next || at.Last.Offset < log.Start {
		return nil
	}
	record, found, err := reader.At(ctx, partition, at.Last.Offset)
	if err != nil || !found || record.IsFiller() || record.Mark().Sum == at.Last.Sum {
		return err
	}
	return fmt.Errorf("%w: at %d one of %s, applied was one of %s", bus.ErrLogDiffers,
		at.Last.Offset, record.Time.UTC().Format(time.RFC3339Nano), at.Last.Time.UTC().Format(time.RFC3339Nano))
}

// receive notes the end of the log when a chunk was fetched, and adds
// the chunk to the input, where it may wait for long.
func (a *assignment) receive(ctx context.Context, c follow.Chunk) error {
	a.consumer.status.Reach.See(c.Partition, c.HighWatermark)
	return a.input.Receive(ctx, c)
}

// A logWatcher looks at the log of claimed partitions.
type logWatcher struct {
	consumer *Consumer
	topic    wire.TopicID
	fresh    []int // never consumed, and without a leader: the start is unknown
}

// watchEnds asks for the ends of logs that are not fully applied: while
// nothing can be applied, nothing is fetched that would show them.
func (w *logWatcher) watchEnds(ctx context.Context) {
	for ctx.Err() == nil {
		lifecycle.Pause(ctx, w.consumer.cfg.EndWatch)
		if behind := w.consumer.status.Reach.Lagging(w.consumer.cfg.EndWatch); len(behind) > 0 {
			w.readEnds(ctx, behind)
		}
	}
}

func (w *logWatcher) readEnds(ctx context.Context, partitions []int) {
	c := w.consumer
	logs, err := c.cluster.Logs(ctx, c.cfg.Topic, partitions)
	if err != nil || logs.ID != w.topic {
		c.logger.Debug("cannot see where the log ends", "error", err)
		return
	}
	c.status.Reach.Ends(logs.Bounds)
}

// awaitLeaders returns once an unclaimed partition has a leader: then
// all are claimed again.
func (w *logWatcher) awaitLeaders(ctx context.Context) error {
	c := w.consumer
	for failures := 1; ctx.Err() == nil; failures++ {
		lifecycle.Pause(ctx, clock.Backoff(failures, 100*time.Millisecond, 2*time.Second))
		if logs, err := c.cluster.Logs(ctx, c.cfg.Topic, w.fresh); err == nil && len(logs.Bounds) > 0 {
			return errors.New("partitions have got a leader that were never consumed")
		}
	}
	return ctx.Err()
}

// reportInterval is how often a backlog is logged. What is applied
// sooner is not mentioned.
const reportInterval = 5 * time.Second

// reportBacklog logs how far a backlog is applied, until it is.
func (w *logWatcher) reportBacklog(ctx context.Context) {
	logger := w.consumer.logger
	reported := false
	for {
		lifecycle.Pause(ctx, reportInterval)
		b, exists := w.consumer.Backlog()
		switch {
		case ctx.Err() != nil:
			return
		case exists && b.Records > 0:
			reported = true
			logger.Info("catching up", "records", b.Records, "done_percent", math.Floor(100*b.Done), "left", b.Left.Round(time.Second))
		case exists: // the brokers have not said yet how much it is
		case reported:
			logger.Info("caught up")
			return
		default:
			return
		}
	}
}
