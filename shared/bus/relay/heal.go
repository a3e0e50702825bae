package relay

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/clock"
	"github.com/weirlog/weir/shared/bus/logrange"
)

// errWentBack means that a log gave offsets a second time.
var errWentBack = errors.New("the log has lost its end: it gave offsets a second time")

// heal looks, when that is due, whether the log still has what this
// relay and those before it have published, and goes back to before what
// is missing. Nothing is published before the first look.
func (r *Relay) heal(ctx context.Context) error {
	if r.held.epoch != r.healed {
		r.checkAt, r.comparison.at, r.comparison.untold = clock.Now(), clock.Now(), false
	}
	if r.cfg.Lacks() && r.comparison.hasten() {
		r.checkAt = clock.Now()
	}
	if clock.Now().Before(r.checkAt) {
		return nil
	}
	from, lost, err := r.check(ctx)
	if err != nil {
		return fmt.Errorf("cannot see whether the log has what was published: %w", err)
	}
	r.healed, r.checkAt = r.held.epoch, clock.Now().Add(r.cfg.CheckInterval)
	if lost == "" {
		return nil
	}
	r.comparison.at = clock.Now()
	return r.goBack(ctx, from, lost)
}

// check compares the marks with the log. lost says what it lacks; empty:
// nothing.
func (r *Relay) check(ctx context.Context) (from Cursor, lost string, err error) {
	ctx, cancel := r.bounded(ctx)
	defer cancel()
	from = r.held.cursor
	for _, newest := range newestOfEach(r.marks) {
		has, why, err := r.newestIntact(ctx, newest)
		if err != nil {
			return from, "", err
		}
		if why != "" {
			from.Position, lost = min(from.Position, has.Position), cmp.Or(lost, why)
		}
	}
	return from, lost, nil
}

// newestOfEach returns the newest mark of each partition.
func newestOfEach(marks []mark) (newest []mark) {
	for _, m := range marks {
		newest = slices.DeleteFunc(newest, m.isBeside)
		newest = append(newest, m)
	}
	return newest
}

// newestIntact returns up to where the log of a mark's partition has all
// that was published, and why not all of it; empty: it has.
func (r *Relay) newestIntact(ctx context.Context, of mark) (has Cursor, why string, err error) {
	id, bounds, err := r.log(of.Topic).Bounds(ctx)
	if err != nil {
		return has, "", err
	}
	r.topics[of.Topic] = hex.EncodeToString(id[:])
	for _, m := range slices.Backward(r.marks) {
		if !m.isBeside(of) {
			continue
		}
		missing, err := r.missing(ctx, m, bounds[m.Partition])
		if err != nil {
			return has, "", err
		}
		if missing == "" {
			return Cursor{m.Position}, why, nil
		}
		why = cmp.Or(why, missing)
	}
	return Cursor{}, why, nil
}

// missing says why the log lacks a mark's record; empty: it has it, or
// had it: a compacted log drops what is outdated, and any log what is old.
func (r *Relay) missing(ctx context.Context, m mark, log logrange.Bounds) (why string, err error) {
	where := fmt.Sprintf("partition %d of %s", m.Partition, m.Topic)
	switch {
	case m.TopicID != "" && m.TopicID != r.topics[m.Topic]:
		return where + " is that of a recreated topic", nil
	case m.Offset >= log.End:
		return fmt.Sprintf("%s ends at %d, and had a record at %d", where, log.End, m.Offset), nil
	case m.Offset < log.Start:
		return "", nil
	}
	_, err = r.log(m.Topic).Read(ctx, m.Partition, m.Offset, m.Offset+1, func(record bus.Record) {
		if digest(record.Header(bus.HeaderID)) != m.Digest {
			why = fmt.Sprintf("%s has another record at %d than it had", where, m.Offset)
		}
	})
	return why, err
}

// goBack moves the cursor back to before what a log lacks. From there on
// everything is published again, in order and under the same ids.
func (r *Relay) goBack(ctx context.Context, from Cursor, lost string) error {
	ctx, cancel := r.bounded(ctx)
	defer cancel()
	from.Position = min(from.Position, r.held.cursor.Position)
	kept := upTo(slices.Clone(r.marks), from)
	r.logger.Warn("the log has lost what was published: publishing it again", "from", from.Position, "to", r.held.cursor.Position, "lost", lost)
	tag, err := r.cfg.Pool.Exec(ctx, `UPDATE bus_relays SET position = $4, marks = $5::jsonb, lost_at = clock_timestamp(), lost = $6
		WHERE name = $1 AND owner = $2 AND epoch = $3`, r.cfg.Name, r.owner, r.held.epoch, from.Position, encode(kept), lost)
	if err == nil && tag.RowsAffected() == 0 {
		err = bus.ErrFenced
	}
	if err != nil {
		r.held = lease{}
		return fmt.Errorf("cannot go back to what was lost: %w", err)
	}
	r.until = max(r.until, r.held.cursor.Position)
	r.held.cursor, r.marks = from, kept
	return nil
}
