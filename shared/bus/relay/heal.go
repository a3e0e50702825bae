package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/clock"
)

// errWentBack means that a log gave offsets a second time.
var errWentBack = errors.New("the log has lost its end: it gave offsets a second time")

// heal looks, when that is due, whether the log still has what this
// relay and those before it have published, and goes back to before what
// is missing. Nothing is published before the first look.
func (r *Relay) heal(ctx context.Context) error {
	if r.lease.held.epoch != r.published.checked {
		r.published.checkAt, r.comparison.at, r.comparison.untold = clock.Now(), clock.Now(), false
	}
	if r.cfg.Comparisons.Lacks() && r.comparison.hasten() {
		r.published.checkAt = clock.Now()
	}
	if clock.Now().Before(r.published.checkAt) {
		return nil
	}
	bounded, cancel := r.lease.bounded(ctx)
	defer cancel()
	from, lost, err := r.published.check(bounded, r.lease.held.cursor)
	if err != nil {
		return fmt.Errorf("cannot see whether the log has what was published: %w", err)
	}
	r.published.checked, r.published.checkAt = r.lease.held.epoch, clock.Now().Add(r.cfg.CheckInterval)
	if lost == "" {
		return nil
	}
	r.comparison.at = clock.Now()
	return r.goBack(ctx, from, lost)
}

// goBack moves the cursor back to before what a log lacks. From there on
// everything is published again, in order and under the same ids.
func (r *Relay) goBack(ctx context.Context, from Cursor, lost string) error {
	ctx, cancel := r.lease.bounded(ctx)
	defer cancel()
	from.Position = min(from.Position, r.lease.held.cursor.Position)
	kept := upTo(slices.Clone(r.published.marks), from)
	r.logger.Warn("the log has lost what was published: publishing it again", "from", from.Position, "to", r.lease.held.cursor.Position, "lost", lost)
	tag, err := r.cfg.Pool.Exec(ctx, `UPDATE bus_relays SET position = $4, marks = $5::jsonb, lost_at = clock_timestamp(), lost = $6
		WHERE name = $1 AND owner = $2 AND epoch = $3`, r.cfg.Name, r.lease.owner, r.lease.held.epoch, from.Position, encode(kept), lost)
	if err == nil && tag.RowsAffected() == 0 {
		err = bus.ErrFenced
	}
	if err != nil {
		r.lease.held = lease{}
		return fmt.Errorf("cannot go back to what was lost: %w", err)
	}
	r.published.until = max(r.published.until, r.lease.held.cursor.Position)
	r.lease.held.cursor, r.published.marks = from, kept
	return nil
}

// A Difference is what topics lack, or have too much, compared with the
// tables that they are published from.
type Difference struct {
	Lost    string     // in words; empty: nothing differs
	Publish []Outgoing // newest states, and tombstones, in order; their cursors don't matter
	GoBack  bool       // everything behind From is published again after those
	From    Cursor
}

// A comparison runs beside a relay's work. Its methods belong to the
// relay's goroutine.
type comparison struct {
	at       time.Time // when the next one is due
	hastened time.Time // when it last became due early
	result   chan compared
	again    bool            // the one before found something
	untold   bool            // the last one has ended, but for what it has published again
	newer    map[string]bool // what was published meanwhile, by topic and key; bounded by the changes of that time
	running  sync.WaitGroup
}

// compared is the result of a comparison begun in an epoch.
type compared struct {
	difference Difference
	err        error
	epoch      int64
}

// hasten makes the next comparison due now, unless one is under way or
// what the one before has published may not be read yet.
func (c *comparison) hasten() bool {
	now := clock.Now()
	if c.result != nil || c.untold || now.Sub(c.hastened) < compareRetry {
		return false
	}
	c.at, c.hastened = now, now
	return true
}

// end ends what runs, and waits for it.
func (c *comparison) end(cancel context.CancelFunc) {
	cancel()
	c.running.Wait()
}

// compare begins a comparison when one is due, and takes its result. It
// is called at the end of the outbox, so that all that was committed
// before a start is published before its comparison.
func (r *Relay) compare(ctx context.Context) error {
	c := &r.comparison
	switch {
	case r.cfg.Comparisons.Compare == nil:
		return nil
	case c.untold:
		return r.tell(ctx)
	case c.result == nil && clock.Now().Before(c.at):
		return nil
	case c.result == nil:
		c.result, c.newer = make(chan compared, 1), make(map[string]bool)
		result, epoch, published := c.result, r.lease.held.epoch, r.lease.held.cursor
		c.running.Go(func() {
			difference, err := r.cfg.Comparisons.Compare(ctx, published)
			result <- compared{difference, err, epoch}
			r.Wake()
		})
		return nil
	}
	select {
	case found := <-c.result:
		c.result = nil
		return r.take(ctx, found)
	default:
		return nil
	}
}

// compareRetry is the pause after a comparison that failed.
const compareRetry = time.Second

// take acts on a result: it publishes what differs, and has it compared
// once more. A difference that stays is reported, and waits for the next
// comparison.
func (r *Relay) take(ctx context.Context, found compared) error {
	c, difference := &r.comparison, r.comparison.left(found.difference)
	if found.epoch != r.lease.held.epoch {
		c.at = clock.Now()
		return nil
	}
	c.at = clock.Now().Add(compareRetry)
	if found.err != nil {
		return fmt.Errorf("cannot compare the topics with the tables: %w", found.err)
	}
	if err := r.repair(ctx, difference); err != nil {
		return fmt.Errorf("cannot publish what the log has lost: %w", err)
	}
	if difference.Lost != "" && !c.again {
		c.again, c.at = true, clock.Now()
		return nil
	}
	if difference.Lost != "" {
		r.logger.Error("the log still differs from the tables after what it had lost was published again", "lost", difference.Lost)
	}
	c.again, c.at = false, clock.Now().Add(r.cfg.Comparisons.Interval)
	if c.untold = difference.GoBack; c.untold { // at the end of the outbox
		return nil
	}
	return r.tell(ctx)
}

// tell calls Compared; where that fails, all is compared again.
func (r *Relay) tell(ctx context.Context) error {
	r.comparison.untold = false
	if r.cfg.Comparisons.Compared == nil {
		return nil
	}
	err := r.cfg.Comparisons.Compared(ctx)
	if err != nil {
		r.comparison.at = clock.Now().Add(compareRetry)
	}
	return err
}

// left is a difference without keys of which something newer was published
// meanwhile: an old state never follows a new one.
func (c *comparison) left(d Difference) Difference {
	d.Publish = slices.DeleteFunc(slices.Clone(d.Publish), func(out Outgoing) bool { return c.newer[placeOf(out)] })
	if len(d.Publish) == 0 && !d.GoBack {
		return Difference{}
	}
	return d
}

// repair publishes what differs.
func (r *Relay) repair(ctx context.Context, d Difference) error {
	if d.Lost == "" {
		return nil
	}
	epoch := r.lease.held.epoch
	for part := range slices.Chunk(d.Publish, r.cfg.Batch) {
		if ok, err := r.lease.hold(ctx, &r.published); err != nil || !ok || r.lease.held.epoch != epoch {
			return cmp.Or(err, bus.ErrFenced) // another relay may have published something newer
		}
		if _, err := r.publish(ctx, part); err != nil {
			return err
		}
	}
	r.published.coming = nil // they have no place in the outbox
	if err := r.noteLoss(ctx, d.Lost, len(d.Publish)); err != nil || !d.GoBack {
		return err
	}
	return r.goBack(ctx, d.From, d.Lost)
}

// placeOf returns what replaces a message: topic and key.
func placeOf(out Outgoing) string {
	return out.Topic + " " + out.Message.Metadata[bus.KeyMetadata]
}

// see notes what is published while a comparison runs.
func (c *comparison) see(page []Outgoing) {
	if c.result == nil {
		return
	}
	for _, out := range page {
		if out.Message != nil {
			c.newer[placeOf(out)] = true
		}
	}
}

// noteLoss keeps for people what a comparison has found.
func (r *Relay) noteLoss(ctx context.Context, lost string, published int) error {
	ctx, cancel := r.lease.bounded(ctx)
	defer cancel()
	r.logger.Warn("the log differed from the tables: published what it had lost", "records", published, "lost", lost)
	r.metrics.republished.Add(float64(published))
	_, err := r.cfg.Pool.Exec(ctx, `UPDATE bus_relays SET lost_at = clock_timestamp(), lost = $2, republished = republished + $3 WHERE name = $1`,
		r.cfg.Name, lost, published)
	return err
}
