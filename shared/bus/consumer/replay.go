package consumer

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer/internal/positions"
	"github.com/weirlog/weir/shared/bus/consumer/internal/transaction"
	"github.com/weirlog/weir/shared/bus/parked"
	"github.com/weirlog/weir/shared/lifecycle"
)

// lookForReplays wakes the assignment if a parked record of its
// partitions is to be replayed, or a stopped lane was cleared.
func (a *assignment) lookForReplays(ctx context.Context) {
	c := a.consumer
	for ctx.Err() == nil {
		asked, err := a.replaysAsked(ctx)
		if err != nil {
			c.logger.Debug("cannot look for parked records", "error", err)
		}
		if asked {
			select {
			case a.asked <- struct{}{}:
			default:
			}
		}
		lifecycle.Pause(ctx, c.cfg.ParkedWatch)
	}
}

func (a *assignment) replaysAsked(ctx context.Context) (asked bool, err error) {
	c := a.consumer
	_, stopped := c.status.Stops()
	err = c.store.Read(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if asked, err = parked.ReplayRequested(ctx, tx, c.cfg.Group, c.cfg.Topic, a.partitions); asked || err != nil {
			return err
		}
		asked, err = c.store.FewerHalted(ctx, tx, a.partitions, stopped)
		return err
	})
	return asked, err
}

// maxReplays is how many parked records are replayed before the log continues.
const maxReplays = 100

// replay applies the requested parked records, each in its own
// transaction, which removes it. A record that fails for good stays,
// with the new reason; a transient failure is retried at the next look.
// It fails only when the assignment ends.
func (a *assignment) replay(ctx context.Context) error {
	after := bus.Position{Partition: -1}
	for range maxReplays {
		place, err := a.replayNext(ctx, after)
		var blame *bus.PermanentError
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, bus.ErrFenced):
			return err
		case errors.As(err, &blame):
			err = a.parkAgain(ctx, place, blame.Err)
		case err == nil && place.Partition < 0:
			return nil
		}
		if err != nil {
			a.consumer.logger.Warn("cannot apply a parked record yet", "partition", place.Partition, "offset", place.Offset, "error", err)
			if place.Partition < 0 {
				return nil
			}
		}
		after = place
	}
	return nil // the rest at the next look
}

// replayNext applies the first requested record after the given one and
// returns its place; none: partition -1.
func (a *assignment) replayNext(ctx context.Context, after bus.Position) (bus.Position, error) {
	at := bus.Position{Partition: -1}
	var record bus.Record
	err := a.consumer.store.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var found bool
		var err error
		record, found, err = parked.NextToReplay(ctx, tx, a.consumer.cfg.Group, a.consumer.cfg.Topic, a.partitions, after)
		if err != nil || !found {
			return err
		}
		at = bus.Position{Partition: record.Partition, Offset: record.Offset}
		return a.applyParked(ctx, tx, record)
	})
	if err == nil && at.Partition >= 0 {
		a.consumer.logger.Info("parked record applied", "partition", at.Partition, "offset", at.Offset)
		a.consumer.metrics.Replayed.Inc()
		a.consumer.cfg.Committed([]bus.Record{record})
	}
	if err != nil && transaction.BlamesData(err) && !bus.IsPermanent(err) {
		err = bus.Permanent(err)
	}
	return at, err
}

// applyParked applies a parked record under the epoch of its partition,
// and removes it.
func (a *assignment) applyParked(ctx context.Context, tx pgx.Tx, r bus.Record) error {
	if err := a.consumer.store.Own(ctx, tx, r.Partition, a.claims[r.Partition].Epoch); err != nil {
		return err
	}
	if err := positions.AsNobody(ctx, tx); err != nil {
		return err
	}
	if err := a.consumer.handle(ctx, tx, []bus.Record{r}); err != nil {
		return err
	}
	if err := positions.AsSystem(ctx, tx); err != nil {
		return err
	}
	return parked.Remove(ctx, tx, a.consumer.cfg.Group, r.Topic, bus.Position{Partition: r.Partition, Offset: r.Offset})
}

// parkAgain notes that a replay failed, and clears its request.
func (a *assignment) parkAgain(ctx context.Context, at bus.Position, reason error) error {
	a.consumer.logger.Error("parked record cannot be applied", "partition", at.Partition, "offset", at.Offset, "error", reason)
	return a.consumer.store.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := a.consumer.store.Own(ctx, tx, at.Partition, a.claims[at.Partition].Epoch); err != nil {
			return err
		}
		return parked.FailAgain(ctx, tx, a.consumer.cfg.Group, a.consumer.cfg.Topic, at, reason)
	})
}

// working returns the partitions of an assignment in order.
func (a *assignment) working() []int { return slices.Sorted(maps.Keys(a.claims)) }
