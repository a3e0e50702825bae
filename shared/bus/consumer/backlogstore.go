package consumer

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer/internal/lanes"
)

// asNobody undoes asSystem: a handler chooses by itself whose rows it sees.
const asNobody = `SELECT set_config('weir.organization', '', true)`

// saveBacklogs writes only over rows that are as this member last saw them: one
// that a person has deleted or moved must not come back.
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

// queueBacklogs writes backlogs of one topic, and counts those that were written.
func (a *assignment) queueBacklogs(batch *pgx.Batch, all []lanes.Backlog, saved *int) {
	var lanes []string
	var partitions []int
	var written []bool
	var next, last, records, bytes []int64
	var since []time.Time
	for _, b := range all {
		_, known := a.backlogs[b.Key]
		lanes, partitions, written, since = append(lanes, b.Lane), append(partitions, b.Partition), append(written, known), append(since, b.Since)
		next, last, records, bytes = append(next, b.Next), append(last, b.Last), append(records, b.Records), append(bytes, b.Bytes)
	}
	cfg := a.consumer.cfg
	batch.Queue(asSystem)
	batch.Queue(saveBacklogs, cfg.Group, cfg.Topic, [16]byte(all[0].Topic), lanes, partitions, written, next, last, records, bytes, since).
		QueryRow(func(row pgx.Row) error { return row.Scan(saved) })
	batch.Queue(asNobody)
}

// takeBacklogs reads the backlogs of the claimed partitions. Those of a
// replaced topic are gone, once the positions were set into the new one.
func (a *assignment) takeBacklogs(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, asSystem); err != nil {
		return err
	}
	found, err := a.readBacklogs(ctx, tx)
	if err != nil {
		return err
	}
	a.backlogs = make(lanes.Backlogs, len(found))
	for _, b := range found {
		if b.Topic != a.claims[b.Partition].topic {
			err = errors.Join(err, a.dropBacklog(ctx, tx, b))
			continue
		}
		a.backlogs[b.Key] = b
	}
	return err
}

// readBacklogs reads the backlogs of the claimed partitions as
// they are written down.
func (a *assignment) readBacklogs(ctx context.Context, tx pgx.Tx) ([]lanes.Backlog, error) {
	rows, err := tx.Query(ctx, `SELECT organization, partition, topic_id, next, last, records, bytes, since, coalesce(halted, '') FROM bus_deferred
		WHERE group_name = $1 AND topic = $2 AND partition = ANY($3)`, a.consumer.cfg.Group, a.consumer.cfg.Topic, a.working())
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanBacklog)
}

// clearedSome reports whether a person has cleared stopped lanes:
// fewer are stored than this member has.
func (a *assignment) clearedSome(ctx context.Context, tx pgx.Tx) (some bool, err error) {
	c := a.consumer
	_, stopped := c.status.stops()
	if stopped == 0 {
		return false, nil
	}
	err = tx.QueryRow(ctx, `SELECT count(*) < $4 FROM bus_deferred WHERE group_name = $1 AND topic = $2 AND partition = ANY($3) AND halted IS NOT NULL`,
		c.cfg.Group, c.cfg.Topic, a.partitions, stopped).Scan(&some)
	return some, err
}

// takeUpCleared resumes stopped lanes that were cleared, where they are set
// to, and drops those that were deleted.
func (a *assignment) takeUpCleared(ctx context.Context) error {
	if !a.backlogs.AnyHalted() {
		return nil
	}
	var found []lanes.Backlog
	err := a.replayOnce(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		found, err = a.readBacklogs(ctx, tx)
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

// errNoLanes stops a partition: its position has passed records
// that only their lanes lead to.
var errNoLanes = errors.New("lanes have left records behind, and this consumer has no Lanes.Of to find them by")

// resume resumes the backlogs.
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

// refuse leaves a partition to a consumer that has lanes.
func (a *assignment) refuse(at lanes.Key) {
	c := a.consumer
	delete(a.backlogs, at)
	if a.claims[at.Partition] == nil {
		return
	}
	delete(a.claims, at.Partition)
	c.logger.Error("partition stopped", "partition", at.Partition, "error", errNoLanes)
	c.status.halt(at.Partition, errNoLanes)
}

func scanBacklog(row pgx.CollectableRow) (b lanes.Backlog, err error) {
	var topic [16]byte
	err = row.Scan(&b.Lane, &b.Partition, &topic, &b.Next, &b.Last, &b.Records, &b.Bytes, &b.Since, &b.Halted)
	b.Topic, b.Spans = topic, []lanes.Span{{First: b.Next, Last: b.Last}}
	return b, err
}

func (a *assignment) dropBacklog(ctx context.Context, tx pgx.Tx, b lanes.Backlog) error {
	a.consumer.logger.Error("deferred records are gone", "lane", b.Lane, "partition", b.Partition, "first", b.Next, "last", b.Last, "records", b.Records,
		"error", bus.ErrTopicReplaced)
	_, err := tx.Exec(ctx, `DELETE FROM bus_deferred`+ofBacklog, a.consumer.laneArgs(b.Key)...)
	return err
}

// forgetBacklogs takes the lanes of a stopped partition out of
// the turns; their rows stay.
func (a *assignment) forgetBacklogs(partition int) {
	for at := range a.backlogs {
		if at.Partition == partition {
			a.finish(at)
		}
	}
}

// keep notes a backlog that is written down.
func (a *assignment) keep(b lanes.Backlog) {
	a.backlogs[b.Key] = b
	a.turns.Add(b.Lane)
	a.consumer.status.keep(b)
}

// finish notes that a lane is back with the others in a partition.
func (a *assignment) finish(at lanes.Key) {
	delete(a.backlogs, at)
	a.turns.Succeed(at)
	a.consumer.status.finish(at)
}

// haltBacklog stops a lane in one partition: its records are gone from the log,
// and to continue would lose them silently.
func (a *assignment) haltBacklog(ctx context.Context, at lanes.Key, reason error) {
	c, b := a.consumer, a.backlogs[at]
	b.Halted = reason.Error()
	a.keep(b)
	c.stopLane(at, reason)
	if err := a.replayOnce(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := a.own(ctx, tx, at.Partition); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `UPDATE bus_deferred SET halted = $5`+ofBacklog, append(c.laneArgs(at), b.Halted)...)
		return err
	}); err != nil {
		c.logger.Error("cannot write down that a lane is stopped", "lane", at.Lane, "partition", at.Partition, "error", err)
	}
}
