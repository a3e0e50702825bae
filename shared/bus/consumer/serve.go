package consumer

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer/internal/deferred"
	"github.com/weirlog/weir/shared/bus/consumer/internal/lanes"
	"github.com/weirlog/weir/shared/bus/consumer/internal/positions"
	"github.com/weirlog/weir/shared/bus/consumer/internal/transaction"
	"github.com/weirlog/weir/shared/bus/internal/clock"
	"github.com/weirlog/weir/shared/bus/parked"
	"github.com/weirlog/weir/shared/lifecycle"
)

// ahead reads for the next lane's turn while another one is served.
type ahead struct {
	reader   *deferred.Reader
	backlogs *backlogs
	reading  bool              // a read is running
	results  chan *lanes.Batch // its result; nil: nothing could be read yet
	next     *lanes.Batch      // the received result

	served time.Time     // when the last turn ended
	took   time.Duration // how long it took
	wg     sync.WaitGroup
}

func newAhead(reader *deferred.Reader, of *backlogs) *ahead {
	return &ahead{reader: reader, backlogs: of, results: make(chan *lanes.Batch, 1)}
}

// close waits for a read whose context has ended.
func (h *ahead) close() {
	h.wg.Wait()
	h.reader.Close()
}

// read reads the records of the next turn. It waits if all have failed.
func (h *ahead) read(ctx context.Context, served *lanes.Batch) {
	if h.reading {
		return
	}
	e, ok := h.backlogs.turns.NextRead(h.backlogs.all, served, h.backlogs.consumer.maxBatch())
	if !ok && h.backlogs.turns.Empty() {
		return
	}
	h.reading = true
	if ok {
		h.wg.Go(func() { h.results <- h.reader.Read(ctx, e) })
		return
	}
	rest := h.backlogs.turns.Rest()
	h.wg.Go(func() {
		lifecycle.Pause(ctx, rest)
		h.results <- nil
	})
}

// done takes what was read.
func (h *ahead) done(s *lanes.Batch) {
	h.reading, h.next = false, s
}

// serve gives the next lane one transaction, and has the one after it
// read meanwhile. Late records of the log go first, but only for a while.
func (a *assignment) serve(ctx context.Context) error {
	select {
	case s := <-a.ahead.results: // take it also while more of the log comes
		a.ahead.done(s)
	default:
	}
	if a.ahead.next == nil {
		a.ahead.read(ctx, nil)
		return nil
	}
	if a.ahead.yields() && a.input.Late(a.consumer.cfg.Lanes.Late/2) {
		return nil
	}
	s := a.ahead.next
	a.ahead.next = nil
	if s.Err != nil {
		a.backlogs.turns.Fail(s.Key)
	}
	if a.backlogs.all[s.Key].Next != s.Request.Next {
		a.ahead.read(ctx, nil) // the turn before failed
		return nil
	}
	if p := a.backlogs.turns.Limit(s.Lane); p != nil {
		s.Cut(p.Limit(a.consumer.maxBatch()), a.consumer.cfg.Lanes)
	}
	a.ahead.read(ctx, s)
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
		a.backlogs.halt(ctx, s.Key, a.claims[s.Partition].Epoch, s.Err)
		return nil
	case s.Err != nil:
		a.consumer.logger.Warn("cannot read deferred records yet", "lane", s.Lane, "partition", s.Partition, "error", s.Err)
		return nil //nolint:nilerr // it is read again at another turn
	}
	err := a.apply(ctx, lanes.Work{Records: s.Records, Lane: &s.Key, Until: s.Next})
	var transient *transaction.TransientError
	if errors.As(err, &transient) {
		a.backlogs.turns.Fail(s.Key)
		a.backlogs.turns.Add(s.Lane) // reading ahead removed it if this was to be its last turn
		a.ahead.read(ctx, nil)
		return nil // it was logged; they come again at another turn
	}
	if err != nil {
		return err
	}
	a.backlogs.turns.Succeed(s.Key)
	a.progress.settle()
	if p := a.backlogs.turns.Limit(s.Lane); p != nil {
		p.Learn(a.tx.Spent, a.consumer.cfg.Lanes.Turn, s.Taken, s.Limit, a.consumer.maxBatch())
	}
	return nil
}

// stopLane stops a lane in a partition, in the log and in Ready.
func (c *Consumer) stopLane(at lanes.Key, reason error) {
	c.logger.Error("lane stays stopped until weir resume", "lane", at.Lane, "partition", at.Partition, "error", reason)
	c.status.Stop(at, reason)
}

// backlogs are the lanes that are behind the log in the claimed partitions.
type backlogs struct {
	consumer *Consumer
	all      lanes.Backlogs
	turns    *lanes.Turns
}

// keep notes a stored backlog.
func (b *backlogs) keep(one lanes.Backlog) {
	b.all[one.Key] = one
	b.turns.Add(one.Lane)
	b.consumer.status.Keep(one)
}

// finish notes that a lane has caught up in a partition.
func (b *backlogs) finish(at lanes.Key) {
	delete(b.all, at)
	b.turns.Succeed(at)
	b.consumer.status.Finish(at)
}

// drop takes the lanes of a stopped partition out of the turns; their
// rows stay.
func (b *backlogs) drop(partition int) {
	for at := range b.all {
		if at.Partition == partition {
			b.finish(at)
		}
	}
}

// through reports whether the earlier part of divided work went to the
// end of its lane's range.
func (b *backlogs) through(w lanes.Work) bool {
	if w.Lane == nil || len(w.Records) > 0 {
		return false
	}
	at, behind := b.all[*w.Lane]
	return !behind || at.Next >= w.Until
}

// resume takes over what was stored. Without lanes it returns the
// partitions that only a consumer with lanes can go on with.
func (b *backlogs) resume() (refused []int) {
	for at, one := range b.all {
		if b.consumer.cfg.Lanes.Of == nil {
			delete(b.all, at)
			refused = append(refused, at.Partition)
			continue
		}
		b.keep(one)
		if one.Halted != "" {
			b.consumer.stopLane(at, errors.New(one.Halted))
		}
	}
	return refused
}

// resumeCleared resumes stopped lanes that were cleared, at their
// stored positions, and drops deleted ones.
func (b *backlogs) resumeCleared(ctx context.Context, partitions []int) error {
	if !b.all.AnyHalted() {
		return nil
	}
	var found []lanes.Backlog
	err := b.consumer.store.Write(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		found, err = b.consumer.store.Backlogs(ctx, tx, partitions)
		return err
	})
	if err != nil {
		b.consumer.logger.Debug("cannot look for lanes that were cleared", "error", err)
		return ctx.Err()
	}
	written := make(map[lanes.Key]lanes.Backlog, len(found))
	for _, w := range found {
		written[w.Key] = w
	}
	for at, was := range maps.Clone(b.all) {
		now, there := written[at]
		if was.Halted == "" || now.Halted != "" {
			continue
		}
		b.finish(at)
		if there {
			b.keep(now)
		}
	}
	return nil
}

// halt stops a lane in one partition: the log has lost its records, and
// to continue would hide that.
func (b *backlogs) halt(ctx context.Context, at lanes.Key, epoch int64, reason error) {
	c, one := b.consumer, b.all[at]
	one.Halted = reason.Error()
	b.keep(one)
	c.stopLane(at, reason)
	if err := c.store.HaltLane(ctx, at, epoch, one.Halted); err != nil {
		c.logger.Error("cannot write down that a lane is stopped", "lane", at.Lane, "partition", at.Partition, "error", err)
	}
}

// park parks a record with the reason, or its place alone, and moves
// on, in one transaction.
func (a *assignment) park(ctx context.Context, w lanes.Work, reason error) error {
	c, r := a.consumer, w.Records[0]
	c.logger.Error("record cannot be applied, parking it", "partition", r.Partition, "offset", r.Offset, "error", reason)
	err := a.tx.Run(ctx, a.moverOf(w), w, func(ctx context.Context, tx pgx.Tx, _ []bus.Record) error {
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

// replays are the parked records that an operator wants applied.
type replays struct {
	consumer   *Consumer
	claims     map[int]*positions.Position
	partitions []int         // the claimed ones, in order
	asked      chan struct{} // a replay is requested, or a lane was cleared
	due        bool          // asked was received
}

// isDue reports, once, whether parked records are to be replayed.
func (r *replays) isDue() bool {
	select {
	case <-r.asked:
		r.due = true
	default:
	}
	due := r.due
	r.due = false
	return due
}

// look wakes the assignment if a parked record of its
// partitions is to be replayed, or a stopped lane was cleared.
func (r *replays) look(ctx context.Context) {
	c := r.consumer
	for ctx.Err() == nil {
		asked, err := r.areAsked(ctx)
		if err != nil {
			c.logger.Debug("cannot look for parked records", "error", err)
		}
		if asked {
			select {
			case r.asked <- struct{}{}:
			default:
			}
		}
		lifecycle.Pause(ctx, c.cfg.ParkedWatch)
	}
}

func (r *replays) areAsked(ctx context.Context) (asked bool, err error) {
	c := r.consumer
	_, stopped := c.status.Stops()
	err = c.store.Read(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if asked, err = parked.ReplayRequested(ctx, tx, c.cfg.Group, c.cfg.Topic, r.partitions); asked || err != nil {
			return err
		}
		asked, err = c.store.FewerHalted(ctx, tx, r.partitions, stopped)
		return err
	})
	return asked, err
}

// maxReplays is how many parked records are replayed before the log continues.
const maxReplays = 100

// run applies the requested parked records, each in its own
// transaction, which removes it. A record that fails for good stays,
// with the new reason; a transient failure is retried at the next look.
// It fails only when the assignment ends.
func (r *replays) run(ctx context.Context) error {
	after := bus.Position{Partition: -1}
	for range maxReplays {
		place, err := r.next(ctx, after)
		var blame *bus.PermanentError
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, bus.ErrFenced):
			return err
		case errors.As(err, &blame):
			err = r.parkAgain(ctx, place, blame.Err)
		case err == nil && place.Partition < 0:
			return nil
		}
		if err != nil {
			r.consumer.logger.Warn("cannot apply a parked record yet", "partition", place.Partition, "offset", place.Offset, "error", err)
			if place.Partition < 0 {
				return nil
			}
		}
		after = place
	}
	return nil // the rest at the next look
}

// next applies the first requested record after the given one and
// returns its place; none: partition -1.
func (r *replays) next(ctx context.Context, after bus.Position) (bus.Position, error) {
	at := bus.Position{Partition: -1}
	var record bus.Record
	err := r.consumer.store.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var found bool
		var err error
		record, found, err = parked.NextToReplay(ctx, tx, r.consumer.cfg.Group, r.consumer.cfg.Topic, r.partitions, after)
		if err != nil || !found {
			return err
		}
		at = bus.Position{Partition: record.Partition, Offset: record.Offset}
		return r.apply(ctx, tx, record)
	})
	if err == nil && at.Partition >= 0 {
		r.consumer.logger.Info("parked record applied", "partition", at.Partition, "offset", at.Offset)
		r.consumer.metrics.Replayed.Inc()
		r.consumer.cfg.Committed([]bus.Record{record})
	}
	if err != nil && transaction.BlamesData(err) && !bus.IsPermanent(err) {
		err = bus.Permanent(err)
	}
	return at, err
}

// apply applies a parked record under the epoch of its partition,
// and removes it.
func (r *replays) apply(ctx context.Context, tx pgx.Tx, record bus.Record) error {
	if err := r.consumer.store.Own(ctx, tx, record.Partition, r.claims[record.Partition].Epoch); err != nil {
		return err
	}
	if err := r.consumer.handle(ctx, tx, []bus.Record{record}); err != nil {
		return err
	}
	return parked.Remove(ctx, tx, r.consumer.cfg.Group, record.Topic, bus.Position{Partition: record.Partition, Offset: record.Offset})
}

// parkAgain notes that a replay failed, and clears its request.
func (r *replays) parkAgain(ctx context.Context, at bus.Position, reason error) error {
	r.consumer.logger.Error("parked record cannot be applied", "partition", at.Partition, "offset", at.Offset, "error", reason)
	return r.consumer.store.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := r.consumer.store.Own(ctx, tx, at.Partition, r.claims[at.Partition].Epoch); err != nil {
			return err
		}
		return parked.FailAgain(ctx, tx, r.consumer.cfg.Group, r.consumer.cfg.Topic, at, reason)
	})
}
