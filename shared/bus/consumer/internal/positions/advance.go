package positions

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer/internal/lanes"
)

const movePositions = `
UPDATE bus_positions AS b SET next = m.until, last_offset = m.last, last_time = m.time, last_sum = m.sum, updated_at = now()
  FROM unnest($3::integer[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::timestamptz[], $9::bigint[])
       AS m(partition, since, until, epoch, last, time, sum)
 WHERE b.group_name = $1 AND b.topic = $2 AND b.partition = m.partition AND b.next = m.since AND b.epoch = m.epoch`

// An Advance moves the positions of partitions, one row each,
// and defers records.
type Advance struct {
	Store                *Store
	Partitions           []int // in order, so that members don't deadlock
	Since, Until, Epochs []int64
	Last                 []bus.Mark // the last record before each of Until
	Deferring            []lanes.Backlog
	Known                lanes.Backlogs // stored already
}

// Move locks the rows, and refuses, with bus.ErrFenced, a fenced member
// and records applied before. The database ends a stalled member's
// transaction, so that its successor waits no longer.
func (a *Advance) Move(ctx context.Context, tx pgx.Tx) error {
	s := a.Store
	batch := &pgx.Batch{}
	batch.Queue(setIdleTimeout, s.idleTimeout())
	offsets, times, sums := a.marks()
	var moved pgconn.CommandTag
	batch.Queue(movePositions, s.Group, s.Topic, a.Partitions, a.Since, a.Until, a.Epochs, offsets, times, sums).Exec(func(tag pgconn.CommandTag) error {
		moved = tag
		return nil
	})
	saved := 0
	if len(a.Deferring) > 0 {
		s.queueBacklogs(batch, a, &saved)
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return err
	}
	if int(moved.RowsAffected()) != len(a.Partitions) {
		return fmt.Errorf("%w: %d of %d positions moved", bus.ErrFenced, moved.RowsAffected(), len(a.Partitions))
	}
	if saved != len(a.Deferring) {
		return fmt.Errorf("%w: %d of %d positions of lanes are as they were left", bus.ErrFenced, saved, len(a.Deferring))
	}
	return nil
}

// marks returns the columns of Last.
func (a *Advance) marks() (offsets []int64, times []time.Time, sums []int64) {
	for _, m := range a.Last {
		offsets, times, sums = append(offsets, m.Offset), append(times, m.Time), append(sums, int64(m.Sum))
	}
	return offsets, times, sums
}

// Moved reports whether all positions are at their goal: then a commit
// whose answer was lost has succeeded.
func (a *Advance) Moved(ctx context.Context) (bool, error) {
	s := a.Store
	ctx, cancel := s.Bounded(ctx)
	defer cancel()
	var n int
	err := s.Pool.QueryRow(ctx, `SELECT count(*) FROM bus_positions AS b
		JOIN unnest($3::integer[], $4::bigint[], $5::bigint[]) AS m(partition, until, epoch)
		  ON b.partition = m.partition AND b.next = m.until AND b.epoch = m.epoch
		WHERE b.group_name = $1 AND b.topic = $2`, s.Group, s.Topic, a.Partitions, a.Until, a.Epochs).Scan(&n)
	return n == len(a.Partitions), err
}
