package consumer

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer/internal/lanes"
	"github.com/weirlog/weir/shared/bus/consumer/internal/positions"
	"github.com/weirlog/weir/shared/bus/consumer/internal/transaction"
	"github.com/weirlog/weir/shared/bus/internal/clock"
	"github.com/weirlog/weir/shared/bus/parked"
	"github.com/weirlog/weir/shared/lifecycle"
)

// ahead reads for the next lane's turn while another one is served.
type ahead struct {
	reading bool              // a read is running
	read    chan *lanes.Batch // its result; nil: nothing could be read yet
	next    *lanes.Batch      // the received result

	served time.Time     // when the last turn ended
	took   time.Duration // how long it took
}

func newAhead() *ahead { return &ahead{read: make(chan *lanes.Batch, 1)} }

// serve gives the next lane one transaction, and has the one after it
// read meanwhile. Late records of the log go first, but only for a while.
func (a *assignment) serve(ctx context.Context) error {
	select {
	case s := <-a.ahead.read: // take it also while more of the log comes
		a.ahead.done(s)
	default:
	}
	if a.ahead.next == nil {
		a.readAhead(ctx, nil)
		return nil
	}
	if a.ahead.yields() && a.input.Late(a.consumer.cfg.Lanes.Late/2) {
		return nil
	}
	s := a.ahead.next
	a.ahead.next = nil
	if s.Err != nil {
		a.turns.Fail(s.Key)
	}
	if a.backlogs[s.Key].Next != s.Request.Next {
		a.readAhead(ctx, nil) // the turn before failed
		return nil
	}
	if p := a.turns.Limit(s.Lane); p != nil {
		s.Cut(p.Limit(a.consumer.maxBatch()), a.consumer.cfg.Lanes)
	}
	a.readAhead(ctx, s)
	begun := clock.Now()
	err := a.serveLane(ctx, s)
	a.ahead.served = clock.Now()
	a.ahead.took = a.ahead.served.Sub(begun)
	return err
}

// maxWaits is how long a lane waits for late records of the log, in
// durations of its last turn.
const maxWaits = 4

// yields reports whether the next turn may wait for the log.
func (h *ahead) yields() bool { return clock.Now().Sub(h.served) < maxWaits*h.took }

func (a *assignment) serveLane(ctx context.Context, s *lanes.Batch) error {
	switch {
	case errors.Is(s.Err, bus.ErrOutsideLog):
		a.haltBacklog(ctx, s.Key, s.Err)
		return nil
	case s.Err != nil:
		a.consumer.logger.Warn("cannot read deferred records yet", "lane", s.Lane, "partition", s.Partition, "error", s.Err)
		return nil //nolint:nilerr // it is read again at another turn
	}
	err := a.apply(ctx, lanes.Work{Records: s.Records, Lane: &s.Key, Until: s.Next})
	var transient *transaction.TransientError
	if errors.As(err, &transient) {
		a.turns.Fail(s.Key)
		a.turns.Add(s.Lane) // reading ahead removed it if this was to be its last turn
		a.readAhead(ctx, nil)
		return nil // it was logged; they come again at another turn
	}
	if err != nil {
		return err
	}
	a.turns.Succeed(s.Key)
	a.settle()
	if p := a.turns.Limit(s.Lane); p != nil {
		p.Learn(a.tx.Spent, a.consumer.cfg.Lanes.Turn, s.Taken, s.Limit, a.consumer.maxBatch())
	}
	return nil
}

// readAhead reads the records of the next turn. It waits if all have failed.
func (a *assignment) readAhead(ctx context.Context, served *lanes.Batch) {
	if a.ahead.reading {
		return
	}
	e, ok := a.turns.NextRead(a.backlogs, served, a.consumer.maxBatch())
	if !ok && a.turns.Empty() {
		return
	}
	a.ahead.reading = true
	if ok {
		a.wg.Go(func() { a.ahead.read <- a.reader.Read(ctx, e) })
		return
	}
	rest := a.turns.Rest()
	a.wg.Go(func() {
		lifecycle.Pause(ctx, rest)
		a.ahead.read <- nil
	})
}

// done takes what was read.
func (h *ahead) done(s *lanes.Batch) {
	h.reading, h.next = false, s
}

// stopLane stops a lane in a partition, in the log and in Ready.
func (c *Consumer) stopLane(at lanes.Key, reason error) {
	c.logger.Error("lane stays stopped until weir resume", "lane", at.Lane, "partition", at.Partition, "error", reason)
	c.status.Stop(at, reason)
}

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

// reportInterval is how often a backlog is logged. What is applied
// sooner is not mentioned.
const reportInterval = 5 * time.Second

// reportBacklog logs how far a backlog is applied, until it is.
func (a *assignment) reportBacklog(ctx context.Context) {
	logger := a.consumer.logger
	reported := false
	for {
		lifecycle.Pause(ctx, reportInterval)
		b, exists := a.consumer.Backlog()
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

// park parks a record with the reason, or its place alone, and moves
// on, in one transaction.
func (a *assignment) park(ctx context.Context, w lanes.Work, reason error) error {
	c, r := a.consumer, w.Records[0]
	c.logger.Error("record cannot be applied, parking it", "partition", r.Partition, "offset", r.Offset, "error", reason)
	err := a.tx.Run(ctx, a.moverOf(w), w, func(ctx context.Context, tx pgx.Tx, _ []bus.Record) error {
		if err := positions.AsSystem(ctx, tx); err != nil {
			return err
		}
		erased, err := c.cfg.Erased(ctx, tx, r)
		if err != nil {
			return err
		}
		if erased {
			return parked.AddErased(ctx, tx, c.cfg.Group, r)
		}
		return parked.Add(ctx, tx, c.cfg.Group, r, reason)
	})
	if err == nil {
		c.metrics.Parked.Inc()
	}
	return err
}

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
