package consumer

import (
	"context"
	"errors"
	"time"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer/internal/lanes"
	"github.com/weirlog/weir/shared/bus/consumer/internal/transaction"
	"github.com/weirlog/weir/shared/bus/internal/clock"
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
