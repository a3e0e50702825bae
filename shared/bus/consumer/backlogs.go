package consumer

import (
	"context"
	"errors"
	"maps"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/bus/consumer/internal/lanes"
)

// resumeCleared resumes stopped lanes that were cleared, at their
// stored positions, and drops deleted ones.
func (a *assignment) resumeCleared(ctx context.Context) error {
	if !a.backlogs.AnyHalted() {
		return nil
	}
	var found []lanes.Backlog
	err := a.consumer.store.Write(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		found, err = a.consumer.store.Backlogs(ctx, tx, a.working())
		return err
	})
	if err != nil {
		a.consumer.logger.Debug("cannot look for lanes that were cleared", "error", err)
		return ctx.Err()
	}
	written := make(map[lanes.Key]lanes.Backlog, len(found))
	for _, b := range found {
		written[b.Key] = b
	}
	for at, b := range maps.Clone(a.backlogs) {
		now, there := written[at]
		if b.Halted == "" || now.Halted != "" {
			continue
		}
		a.finish(at)
		if there {
			a.keep(now)
		}
	}
	return nil
}

// errNoLanes stops a partition: its position is after records that only
// lanes lead to.
var errNoLanes = errors.New("lanes have left records behind, and this consumer has no Lanes.Of to find them by")

func (a *assignment) resume() {
	for at, b := range a.backlogs {
		if a.consumer.cfg.Lanes.Of == nil {
			a.refuse(at)
			continue
		}
		a.keep(b)
		if b.Halted != "" {
			a.consumer.stopLane(at, errors.New(b.Halted))
		}
	}
}

// refuse leaves a partition to a consumer with lanes.
func (a *assignment) refuse(at lanes.Key) {
	c := a.consumer
	delete(a.backlogs, at)
	if a.claims[at.Partition] == nil {
		return
	}
	delete(a.claims, at.Partition)
	c.logger.Error("partition stopped", "partition", at.Partition, "error", errNoLanes)
	c.status.Halt(at.Partition, errNoLanes)
}

// dropBacklogs takes the lanes of a stopped partition out of the
// turns; their rows stay.
func (a *assignment) dropBacklogs(partition int) {
	for at := range a.backlogs {
		if at.Partition == partition {
			a.finish(at)
		}
	}
}

// keep notes a stored backlog.
func (a *assignment) keep(b lanes.Backlog) {
	a.backlogs[b.Key] = b
	a.turns.Add(b.Lane)
	a.consumer.status.Keep(b)
}

// finish notes that a lane has caught up in a partition.
func (a *assignment) finish(at lanes.Key) {
	delete(a.backlogs, at)
	a.turns.Succeed(at)
	a.consumer.status.Finish(at)
}

// haltBacklog stops a lane in one partition: the log has lost its
// records, and to continue would hide that.
func (a *assignment) haltBacklog(ctx context.Context, at lanes.Key, reason error) {
	c, b := a.consumer, a.backlogs[at]
	b.Halted = reason.Error()
	a.keep(b)
	c.stopLane(at, reason)
	if err := c.store.HaltLane(ctx, at, a.claims[at.Partition].Epoch, b.Halted); err != nil {
		c.logger.Error("cannot write down that a lane is stopped", "lane", at.Lane, "partition", at.Partition, "error", err)
	}
}
