package consumer

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer/internal/deferred"
	"github.com/weirlog/weir/shared/bus/consumer/internal/lanes"
	"github.com/weirlog/weir/shared/bus/consumer/internal/positions"
	"github.com/weirlog/weir/shared/bus/internal/broker"
	"github.com/weirlog/weir/shared/bus/internal/wire"
	"github.com/weirlog/weir/shared/lifecycle"
)

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
		w.cluster.Close()
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
