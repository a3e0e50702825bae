package positions

import (
	"context"
	"errors"
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
// and records applied before.
func (a *Advance) Move(ctx context.Context, tx pgx.Tx) error {
	s := a.Store
	batch := &pgx.Batch{}
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

// A CatchUp moves a lane's position in one partition, under the
// partition's epoch. It deletes the row of a lane that has caught up.
type CatchUp struct {
	Store    *Store
	From, To lanes.Backlog
	Epoch    int64
}

func (c *CatchUp) statement() string {
	if c.To.Over() {
		return finishBacklog
	}
	return moveBacklog
}

func (c *CatchUp) args() []any {
	args := append(c.Store.keyOf(c.From.Key), c.From.Next)
	if !c.To.Over() {
		args = append(args, c.To.Next, c.To.Records, c.To.Bytes, c.To.Since)
	}
	return args
}

// Move locks the partition's row and moves the lane's. It refuses, with
// bus.ErrFenced, a fenced member and records applied before.
func (c *CatchUp) Move(ctx context.Context, tx pgx.Tx) error {
	if err := c.Store.Own(ctx, tx, c.From.Partition, c.Epoch); err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, c.statement(), c.args()...)
	if err == nil && tag.RowsAffected() != 1 {
		err = fmt.Errorf("%w: lane %q in partition %d", bus.ErrFenced, c.From.Lane, c.From.Partition)
	}
	return err
}

// Moved reports whether the lane is at its goal, and the partition
// still the member's.
func (c *CatchUp) Moved(ctx context.Context) (moved bool, err error) {
	err = c.Store.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := c.Store.Own(ctx, tx, c.From.Partition, c.Epoch); err != nil {
			return err
		}
		next := int64(-1)
		err := tx.QueryRow(ctx, `SELECT next FROM bus_deferred`+ofBacklog, c.Store.keyOf(c.From.Key)...).Scan(&next)
		if errors.Is(err, pgx.ErrNoRows) {
			moved, err = c.To.Over(), nil
			return err
		}
		moved = !c.To.Over() && next == c.To.Next
		return err
	})
	return moved, err
}

// saveBacklogs updates only rows that are as this member last saw them:
// a row that an operator deleted or moved must not come back.
const saveBacklogs = `
WITH d AS (
  SELECT * FROM unnest($4::text[], $5::integer[], $6::boolean[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::timestamptz[])
    AS d(lane, partition, written, next, last, records, bytes, since)
), extended AS (
  UPDATE bus_deferred AS b SET last = d.last, records = d.records, bytes = d.bytes FROM d
   WHERE d.written AND b.organization = d.lane AND b.group_name = $1 AND b.topic = $2 AND b.partition = d.partition AND b.next = d.next
  RETURNING 1
), made AS (
  INSERT INTO bus_deferred (organization, group_name, topic, partition, topic_id, next, last, records, bytes, since)
  SELECT lane, $1, $2, partition, $3, next, last, records, bytes, since FROM d WHERE NOT written
  ON CONFLICT DO NOTHING RETURNING 1
)
SELECT (SELECT count(*) FROM extended) + (SELECT count(*) FROM made)`

// queueBacklogs writes the backlogs of an advance, of one topic,
// and counts them.
func (s *Store) queueBacklogs(batch *pgx.Batch, a *Advance, saved *int) {
	var names []string
	var partitions []int
	var written []bool
	var next, last, records, bytes []int64
	var since []time.Time
	for _, b := range a.Deferring {
		_, known := a.Known[b.Key]
		names, partitions, written, since = append(names, b.Lane), append(partitions, b.Partition), append(written, known), append(since, b.Since)
		next, last, records, bytes = append(next, b.Next), append(last, b.Last), append(records, b.Records), append(bytes, b.Bytes)
	}
	batch.Queue(saveBacklogs, s.Group, s.Topic, [16]byte(a.Deferring[0].Topic), names, partitions, written, next, last, records, bytes, since).
		QueryRow(func(row pgx.Row) error { return row.Scan(saved) })
}

// Backlogs reads the stored backlogs of partitions; tx acts as the system.
func (s *Store) Backlogs(ctx context.Context, tx pgx.Tx, partitions []int) ([]lanes.Backlog, error) {
	rows, err := tx.Query(ctx, `SELECT organization, partition, topic_id, next, last, records, bytes, since, coalesce(halted, '') FROM bus_deferred
		WHERE group_name = $1 AND topic = $2 AND partition = ANY($3)`, s.Group, s.Topic, partitions)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanBacklog)
}

func scanBacklog(row pgx.CollectableRow) (b lanes.Backlog, err error) {
	var topic [16]byte
	err = row.Scan(&b.Lane, &b.Partition, &topic, &b.Next, &b.Last, &b.Records, &b.Bytes, &b.Since, &b.Halted)
	b.Topic, b.Spans = topic, []lanes.Span{{First: b.Next, Last: b.Last}}
	return b, err
}

// FewerHalted reports whether fewer lanes than so many are stopped in
// partitions: an operator has cleared some. tx acts as the system.
func (s *Store) FewerHalted(ctx context.Context, tx pgx.Tx, partitions []int, than int) (fewer bool, err error) {
	if than == 0 {
		return false, nil
	}
	err = tx.QueryRow(ctx, `SELECT count(*) < $4 FROM bus_deferred WHERE group_name = $1 AND topic = $2 AND partition = ANY($3) AND halted IS NOT NULL`,
		s.Group, s.Topic, partitions, than).Scan(&fewer)
	return fewer, err
}

const (
	ofBacklog     = ` WHERE organization = $1 AND group_name = $2 AND topic = $3 AND partition = $4`
	finishBacklog = `DELETE FROM bus_deferred` + ofBacklog + ` AND next = $5`
	moveBacklog   = `UPDATE bus_deferred SET next = $6, records = $7, bytes = $8, since = $9` + ofBacklog + ` AND next = $5`
)

// keyOf returns the first arguments of ofBacklog.
func (s *Store) keyOf(at lanes.Key) []any { return []any{at.Lane, s.Group, s.Topic, at.Partition} }

// HaltLane stores why a lane is stopped in a partition.
func (s *Store) HaltLane(ctx context.Context, at lanes.Key, epoch int64, reason string) error {
	return s.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := s.Own(ctx, tx, at.Partition, epoch); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `UPDATE bus_deferred SET halted = $5`+ofBacklog, append(s.keyOf(at), reason)...)
		return err
	})
}

// drop deletes a backlog whose records were deleted with their topic.
func (s *Store) drop(ctx context.Context, tx pgx.Tx, b lanes.Backlog) error {
	s.Logger.Error("deferred records are gone", "lane", b.Lane, "partition", b.Partition, "first", b.Next, "last", b.Last, "records", b.Records,
		"error", bus.ErrTopicReplaced)
	_, err := tx.Exec(ctx, `DELETE FROM bus_deferred`+ofBacklog, s.keyOf(b.Key)...)
	return err
}
