package consumer

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/clock"
	"github.com/weirlog/weir/shared/lifecycle"
)

// turns is the order in which lanes with backlogs get transactions,
// and what is read ahead for the next one.
type turns struct {
	lanes  []string               // each once
	limits map[string]*batchLimit // bounded by Lanes.Most
	failed map[laneKey]failure    // whose last turn came to nothing; bounded by Lanes.Most

	reading bool            // the next turn is being read
	read    chan *laneBatch // and brings it here; nil: nothing could be read yet
	next    *laneBatch      // which has come

	served time.Time     // when the last one ended
	took   time.Duration // and how long it was
}

func newTurns() *turns {
	return &turns{limits: make(map[string]*batchLimit), failed: make(map[laneKey]failure), read: make(chan *laneBatch, 1)}
}

// failure is how often in a row a lane's turns in one partition
// failed, and until when it gets none: a fault there delays its
// other partitions by one turn at most.
type failure struct {
	count int
	until time.Time
}

func (t *turns) fail(at laneKey) {
	n := t.failed[at].count + 1
	t.failed[at] = failure{n, clock.Now().Add(clock.Backoff(n, 20*time.Millisecond, 2*time.Second))}
}

func (t *turns) succeed(at laneKey) { delete(t.failed, at) }

// pausing reports whether a place failed a moment ago.
func (t *turns) pausing(at laneKey) bool { return clock.Now().Before(t.failed[at].until) }

// maxRest is the longest rest between turns while all that is
// left to read has failed.
const maxRest = 200 * time.Millisecond

// rest is how long nothing can be read.
func (t *turns) rest() time.Duration {
	shortest := maxRest
	for at, f := range t.failed {
		if t.pausing(at) {
			shortest = min(shortest, f.until.Sub(clock.Now()))
		}
	}
	return shortest
}

// add puts a lane last, unless it is there.
func (t *turns) add(lane string) {
	if t.limits[lane] == nil {
		t.limits[lane] = &batchLimit{firstScale}
		t.lanes = append(t.lanes, lane)
	}
}

// has reports whether a lane is behind anywhere.
func (t *turns) has(lane string) bool { return t.limits[lane] != nil }

// readiness is what a lane has left to be read.
type readiness int

const (
	nothing readiness = iota
	later             // all of it has failed a moment ago
	ready
)

// take returns the next ready lane, and puts it last. Lanes that
// need no turn leave the order.
func (t *turns) take(wants func(lane string) readiness) (string, bool) {
	for range len(t.lanes) {
		lane := t.lanes[0]
		t.lanes = t.lanes[1:]
		w := wants(lane)
		if w == nothing {
			delete(t.limits, lane)
			continue
		}
		t.lanes = append(t.lanes, lane)
		if w == ready {
			return lane, true
		}
	}
	return "", false
}

// serve gives the next lane one transaction, and has the one
// after it read meanwhile. What comes in the order of the log
// goes first while it is late, but not for ever.
func (a *assignment) serve(ctx context.Context) error {
	t := a.turns
	select {
	case s := <-t.read: // take it also while more of the log keeps coming
		t.readDone(s)
	default:
	}
	if t.next == nil {
		a.readAhead(ctx, nil)
		return nil
	}
	if t.yields() && a.input.late(a.consumer.cfg.Lanes.Late/2) {
		return nil
	}
	s := t.next
	t.next = nil
	if s.err != nil {
		t.fail(s.laneKey)
	}
	if a.backlogs[s.laneKey].next != s.laneRead.next {
		a.readAhead(ctx, nil) // the turn before came to nothing
		return nil
	}
	if p := t.limits[s.lane]; p != nil {
		s.cut(p.limit(a.consumer.maxBatch()), a.consumer.cfg.Lanes)
	}
	a.readAhead(ctx, s)
	begun := clock.Now()
	err := a.serveLane(ctx, s)
	t.served = clock.Now()
	t.took = t.served.Sub(begun)
	return err
}

// maxWaits is how many times the duration of its last turn a lane waits
// for what comes in the order of the log.
const maxWaits = 4

// yields reports whether the next turn may wait for the log.
func (t *turns) yields() bool { return clock.Now().Sub(t.served) < maxWaits*t.took }

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
	if p := a.turns.limits[s.lane]; p != nil {
		p.learn(a.spent, a.consumer.cfg.Lanes.Turn, s.taken, s.limit, a.consumer.maxBatch())
	}
	return nil
}

// readAhead reads the records of the turn after the one that is
// served. Where all has failed it waits.
func (a *assignment) readAhead(ctx context.Context, served *laneBatch) {
	t := a.turns
	if t.reading {
		return
	}
	e, ok := a.nextLaneRead(served)
	if !ok && len(t.lanes) == 0 {
		return
	}
	t.reading = true
	if ok {
		a.wg.Go(func() { t.read <- a.reader.run(ctx, e) })
		return
	}
	rest := t.rest()
	a.wg.Go(func() {
		lifecycle.Pause(ctx, rest)
		t.read <- nil
	})
}

// readDone takes what was read.
func (t *turns) readDone(s *laneBatch) {
	t.reading, t.next = false, s
}

// nextLaneRead is what to read next: the oldest backlog of the
// lane whose turn it is.
func (a *assignment) nextLaneRead(served *laneBatch) (laneRead, bool) {
	var oldest backlog
	lane, ok := a.turns.take(func(lane string) (w readiness) {
		oldest, w = a.backlogs.oldest(lane, served, a.turns.pausing)
		return w
	})
	if !ok {
		return laneRead{}, false
	}
	limit := a.turns.limits[lane].limit(a.consumer.maxBatch())
	return laneRead{laneKey: oldest.laneKey, next: oldest.next, last: oldest.last, spans: slices.Clone(oldest.spans), limit: limit}, true
}

// stopLane stops a lane in a partition, in the log and in Ready.
func (c *Consumer) stopLane(at laneKey, reason error) {
	c.logger.Error("lane stopped until somebody clears bus_deferred.halted", "lane", at.lane, "partition", at.partition, "error", reason)
	c.note(func() { c.stopped[at] = reason })
}
