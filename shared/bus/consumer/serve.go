package consumer

import (
	"context"
	"errors"
	"time"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/clock"
	"github.com/weirlog/weir/shared/lifecycle"
)

// ahead is what is read for the next lane's turn while another one is served.
type ahead struct {
	reading bool            // it is being read
	read    chan *laneBatch // and brings it here; nil: nothing could be read yet
	next    *laneBatch      // which has come

	served time.Time     // when the last turn ended
	took   time.Duration // and how long it was
}

func newAhead() *ahead { return &ahead{read: make(chan *laneBatch, 1)} }

// serve gives the next lane one transaction, and has the one
// after it read meanwhile. What comes in the order of the log
// goes first while it is late, but not for ever.
func (a *assignment) serve(ctx context.Context) error {
	select {
	case s := <-a.ahead.read: // take it also while more of the log keeps coming
		a.ahead.done(s)
	default:
	}
	if a.ahead.next == nil {
		a.readAhead(ctx, nil)
		return nil
	}
	if a.ahead.yields() && a.input.late(a.consumer.cfg.Lanes.Late/2) {
		return nil
	}
	s := a.ahead.next
	a.ahead.next = nil
	if s.err != nil {
		a.turns.fail(s.laneKey)
	}
	if a.backlogs[s.laneKey].next != s.laneRead.next {
		a.readAhead(ctx, nil) // the turn before came to nothing
		return nil
	}
	if p := a.turns.limit(s.lane); p != nil {
		s.cut(p.limit(a.consumer.maxBatch()), a.consumer.cfg.Lanes)
	}
	a.readAhead(ctx, s)
	begun := clock.Now()
	err := a.serveLane(ctx, s)
	a.ahead.served = clock.Now()
	a.ahead.took = a.ahead.served.Sub(begun)
	return err
}

// maxWaits is how many times the duration of its last turn a lane waits
// for what comes in the order of the log.
const maxWaits = 4

// yields reports whether the next turn may wait for the log.
func (h *ahead) yields() bool { return clock.Now().Sub(h.served) < maxWaits*h.took }

func (a *assignment) serveLane(ctx context.Context, s *laneBatch) error {
	switch {
	case errors.Is(s.err, bus.ErrOutsideLog):
		a.haltBacklog(ctx, s.laneKey, s.err)
		return nil
	case s.err != nil:
		a.consumer.logger.Warn("cannot read deferred records yet", "lane", s.lane, "partition", s.partition, "error", s.err)
		return nil //nolint:nilerr // it is read again at another turn
	}
	err := a.apply(ctx, work{records: s.records, lane: &s.laneKey, until: s.next})
	var transient *transientError
	if errors.As(err, &transient) {
		a.turns.fail(s.laneKey)
		a.turns.add(s.lane) // reading ahead has taken it out, if this was to be its last turn
		a.readAhead(ctx, nil)
		return nil // was logged; they come again at another turn
	}
	if err != nil {
		return err
	}
	a.turns.succeed(s.laneKey)
	a.settle()
	if p := a.turns.limit(s.lane); p != nil {
		p.learn(a.spent, a.consumer.cfg.Lanes.Turn, s.taken, s.limit, a.consumer.maxBatch())
	}
	return nil
}

// readAhead reads the records of the turn after the one that is
// served. Where all has failed it waits.
func (a *assignment) readAhead(ctx context.Context, served *laneBatch) {
	if a.ahead.reading {
		return
	}
	e, ok := a.turns.nextRead(a.backlogs, served, a.consumer.maxBatch())
	if !ok && a.turns.empty() {
		return
	}
	a.ahead.reading = true
	if ok {
		a.wg.Go(func() { a.ahead.read <- a.reader.run(ctx, e) })
		return
	}
	rest := a.turns.rest()
	a.wg.Go(func() {
		lifecycle.Pause(ctx, rest)
		a.ahead.read <- nil
	})
}

// done takes what was read.
func (h *ahead) done(s *laneBatch) {
	h.reading, h.next = false, s
}

// stopLane stops a lane in a partition, in the log and in Ready.
func (c *Consumer) stopLane(at laneKey, reason error) {
	c.logger.Error("lane stopped until somebody clears bus_deferred.halted", "lane", at.lane, "partition", at.partition, "error", reason)
	c.status.stop(at, reason)
}
