package consumer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer/internal/lanes"
)

// A mover moves the positions of some work, in the transaction of its effect.
type mover interface {
	move(ctx context.Context, tx pgx.Tx) error // the first statements: lock, refuse who lost the positions, refuse repetition
	moved(ctx context.Context) (bool, error)   // whether an earlier commit did, whose answer was lost
	committed()                                // notes it
}

// moverOf returns the mover that commits this work.
func (a *assignment) moverOf(w lanes.Work) mover {
	ends := w.Ends()
	if w.Lane != nil {
		from := a.backlogs[*w.Lane]
		return &catchUp{a: a, from: from, to: from.Advanced(w.Records, ends[w.Lane.Partition])}
	}
	m := &advance{a: a, deferring: a.backlogs.Extended(a.topic, w.Deferred)}
	for _, p := range slices.Sorted(maps.Keys(ends)) { // one order for all, so that members don't deadlock
		m.partitions = append(m.partitions, p)
		m.since = append(m.since, a.claims[p].next)
		m.until = append(m.until, ends[p])
		m.epochs = append(m.epochs, a.claims[p].epoch)
	}
	return m
}

const movePositions = `
UPDATE bus_positions AS b SET next = m.until, updated_at = now()
  FROM unnest($3::integer[], $4::bigint[], $5::bigint[], $6::bigint[]) AS m(partition, since, until, epoch)
 WHERE b.group_name = $1 AND b.topic = $2 AND b.partition = m.partition AND b.next = m.since AND b.epoch = m.epoch`

// advance moves the positions of partitions, one row each, and defers
// records to their lanes. Its first statement locks the rows, and
// refuses a fenced member and records applied before. The database ends
// the transaction of a stalled member after its session timeout, so
// that its successor need not wait longer.
type advance struct {
	a                    *assignment
	partitions           []int
	since, until, epochs []int64
	deferring            []lanes.Backlog
}

func (m *advance) move(ctx context.Context, tx pgx.Tx) error {
	c := m.a.consumer
	batch := &pgx.Batch{}
	batch.Queue(setIdleLimit, c.idleLimit())
	var moved pgconn.CommandTag
	batch.Queue(movePositions, c.cfg.Group, c.cfg.Topic, m.partitions, m.since, m.until, m.epochs).Exec(func(tag pgconn.CommandTag) error {
		moved = tag
		return nil
	})
	saved := 0
	if len(m.deferring) > 0 {
		m.a.queueBacklogs(batch, m.deferring, &saved)
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return err
	}
	if int(moved.RowsAffected()) != len(m.partitions) {
		return fmt.Errorf("%w: %d of %d positions moved", bus.ErrFenced, moved.RowsAffected(), len(m.partitions))
	}
	if saved != len(m.deferring) {
		return fmt.Errorf("%w: %d of %d positions of lanes are as they were left", bus.ErrFenced, saved, len(m.deferring))
	}
	return nil
}

const setIdleLimit = `SELECT set_config('idle_in_transaction_session_timeout', $1, true)`

// idleLimit is how long a transaction may be idle, as the database's setting.
func (c *Consumer) idleLimit() string {
	return strconv.FormatInt(c.cfg.SessionTimeout.Milliseconds(), 10)
}

// moved reports whether all positions are at their goal: then a
// commit whose answer was lost has succeeded.
func (m *advance) moved(ctx context.Context) (bool, error) {
	c := m.a.consumer
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	var n int
	err := c.cfg.Pool.QueryRow(ctx, `SELECT count(*) FROM bus_positions AS b
		JOIN unnest($3::integer[], $4::bigint[], $5::bigint[]) AS m(partition, until, epoch)
		  ON b.partition = m.partition AND b.next = m.until AND b.epoch = m.epoch
		WHERE b.group_name = $1 AND b.topic = $2`, c.cfg.Group, c.cfg.Topic, m.partitions, m.until, m.epochs).Scan(&n)
	return n == len(m.partitions), err
}

func (m *advance) committed() {
	until := make(map[int]int64, len(m.partitions))
	for i, p := range m.partitions {
		m.a.claims[p].next = m.until[i]
		until[p] = m.until[i]
	}
	for _, b := range m.deferring {
		m.a.keep(b)
	}
	m.a.consumer.status.applied(until)
	m.a.report(m.partitions...)
}

// catchUp moves the position of a lane in one partition, under
// the partition's epoch. Without a backlog left the row goes,
// and the lane is back with the others.
type catchUp struct {
	a        *assignment
	from, to lanes.Backlog
}

func (m *catchUp) move(ctx context.Context, tx pgx.Tx) error {
	c := m.a.consumer
	batch := &pgx.Batch{}
	batch.Queue(setIdleLimit, c.idleLimit())
	batch.Queue(asSystem)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return err
	}
	if err := m.a.own(ctx, tx, m.from.Partition); err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, m.statement(), m.args()...)
	if err == nil && tag.RowsAffected() != 1 {
		err = fmt.Errorf("%w: lane %q in partition %d", bus.ErrFenced, m.from.Lane, m.from.Partition)
	}
	if err == nil {
		_, err = tx.Exec(ctx, asNobody)
	}
	return err
}

const (
	ofBacklog     = ` WHERE organization = $1 AND group_name = $2 AND topic = $3 AND partition = $4`
	finishBacklog = `DELETE FROM bus_deferred` + ofBacklog + ` AND next = $5`
	moveBacklog   = `UPDATE bus_deferred SET next = $6, records = $7, bytes = $8, since = $9` + ofBacklog + ` AND next = $5`
)

func (m *catchUp) statement() string {
	if m.to.Over() {
		return finishBacklog
	}
	return moveBacklog
}

func (m *catchUp) args() []any {
	args := append(m.a.consumer.laneArgs(m.from.Key), m.from.Next)
	if !m.to.Over() {
		args = append(args, m.to.Next, m.to.Records, m.to.Bytes, m.to.Since)
	}
	return args
}

func (c *Consumer) laneArgs(p lanes.Key) []any {
	return []any{p.Lane, c.cfg.Group, c.cfg.Topic, p.Partition}
}

// moved reports whether the lane is at its goal, and the partition still ours.
func (m *catchUp) moved(ctx context.Context) (moved bool, err error) {
	err = m.a.replayOnce(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := m.a.own(ctx, tx, m.from.Partition); err != nil {
			return err
		}
		next := int64(-1)
		err := tx.QueryRow(ctx, `SELECT next FROM bus_deferred`+ofBacklog, m.a.consumer.laneArgs(m.from.Key)...).Scan(&next)
		if errors.Is(err, pgx.ErrNoRows) {
			moved, err = m.to.Over(), nil
			return err
		}
		moved = !m.to.Over() && next == m.to.Next
		return err
	})
	return moved, err
}

func (m *catchUp) committed() {
	if m.to.Over() {
		m.a.finish(m.to.Key)
	} else {
		m.a.keep(m.to)
	}
	m.a.report(m.to.Partition)
}

// report notes how far the partitions are applied, lanes
// included, for the Kafka group.
func (a *assignment) report(partitions ...int) {
	low := make(map[int]int64, len(partitions))
	for _, p := range partitions {
		low[p] = a.claims[p].next
	}
	a.backlogs.Lower(low)
	a.offsets.note(low)
}
