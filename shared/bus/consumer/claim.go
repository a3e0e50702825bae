package consumer

import (
	"context"
	"errors"
	"fmt"
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
	a := &assignment{
		consumer: c, topic: logs.ID, claims: claimed.Positions, backlogs: claimed.Backlogs, asked: make(chan struct{}, 1), again: make(chan error, 1),
		input: follow.NewBuffer(c.cfg.BufferBytes), goals: status.NewGoals(), offsets: newGroupOffsets(),
		limit: lanes.NewBatchLimit(c.cfg.Lanes), recent: lanes.NewUsage(), turns: lanes.NewTurns(), ahead: newAhead(),
		tx:     &transaction.Runner{Store: c.store, Metrics: c.metrics, Tracer: c.cfg.Tracer, Logger: c.logger},
		reader: deferred.NewReader(c.cluster, c.cfg.Topic, logs.ID, c.cfg.Lanes),
	}
	for p, err := range claimed.Halted {
		c.logger.Error("partition stays stopped until weir resume", "partition", p, "error", err)
	}
	c.status.Claim(claimed.Halted)
	a.resume()
	return a, a.check(ctx, partitions, logs)
}

// check stops partitions that can't continue, and sets the goals of the others.
func (a *assignment) check(ctx context.Context, partitions []int, logs broker.TopicLogs) error {
	for _, p := range partitions {
		claim := a.claims[p]
		if claim == nil {
			if !a.consumer.status.IsHalted(p) {
				a.fresh = append(a.fresh, p)
				a.consumer.status.Lack(p)
				a.goals.Add(p)
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
			if why = compare(ctx, a.reader, p, *claim, log); why != nil && !errors.Is(why, bus.ErrLogDiffers) {
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
			a.dropBacklogs(p)
			continue
		}
		a.consumer.status.Reach.Begin(p, claim.Next, log.End)
		a.goals.Add(p)
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
