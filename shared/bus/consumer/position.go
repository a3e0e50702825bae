package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer/internal/deferred"
	"github.com/weirlog/weir/shared/bus/consumer/internal/lanes"
	"github.com/weirlog/weir/shared/bus/internal/broker"
	"github.com/weirlog/weir/shared/bus/internal/clock"
	"github.com/weirlog/weir/shared/lifecycle"
)

// claimPositions takes a partition without a start only if it was
// consumed before. A new one is stopped for its reason, if it has one.
// Without a reason, because the loss is accepted, one that was stopped
// for it ($8) continues where its log starts now.
const claimPositions = `
INSERT INTO bus_positions (group_name, topic, partition, next, epoch, owner, topic_id, halted)
SELECT $1, $2, p, coalesce(s, 0), 1, $5, $6, reason FROM unnest($3::integer[], $4::bigint[], $7::text[]) AS t(p, s, reason)
 WHERE s IS NOT NULL OR EXISTS (SELECT FROM bus_positions WHERE group_name = $1 AND topic = $2 AND partition = p) ORDER BY p
ON CONFLICT (group_name, topic, partition) DO UPDATE
   SET epoch = bus_positions.epoch + 1, owner = excluded.owner, topic_id = coalesce(bus_positions.topic_id, excluded.topic_id), updated_at = now(),
       next = CASE WHEN starts_with(bus_positions.halted, $8) AND excluded.next > 0 THEN excluded.next ELSE bus_positions.next END,
       halted = CASE WHEN starts_with(bus_positions.halted, $8) AND excluded.next > 0 THEN NULL ELSE bus_positions.halted END
RETURNING partition, next, epoch, coalesce(halted, ''), topic_id`

// claim takes the partitions over under new epochs, which fences
// their former members. A partition that was never consumed starts
// where its log does; without a leader it waits for one. It is
// stopped if its log was cut. One whose position is outside its log,
// or in a deleted topic's, is stopped as well.
func (c *Consumer) claim(ctx context.Context, owner string, partitions []int) (*assignment, error) {
	logs, err := c.cluster.Logs(ctx, c.cfg.Topic, partitions)
	if err != nil {
		return nil, err
	}
	a := &assignment{
		consumer: c, topic: logs.ID, claims: make(map[int]*claimed), asked: make(chan struct{}, 1),
		input: newInput(c.cfg.BufferBytes), goals: newGoals(), offsets: newGroupOffsets(),
		limit: lanes.NewBatchLimit(c.cfg.Lanes), lately: lanes.NewUsage(), turns: lanes.NewTurns(), ahead: newAhead(), reader: deferred.NewReader(c.cluster, c.cfg.Topic, logs.ID, c.cfg.Lanes),
	}
	halted, err := c.takeOver(ctx, a, owner, partitions, logs)
	if err != nil {
		return nil, err
	}
	for p, err := range halted {
		c.logger.Error("partition stays stopped until somebody clears bus_positions.halted", "partition", p, "error", err)
	}
	c.status.claim(halted)
	a.resume()
	return a, a.check(ctx, partitions, logs)
}

// check stops what can't continue where it is, and sets the
// goals of the others.
func (a *assignment) check(ctx context.Context, partitions []int, logs broker.TopicLogs) error {
	for _, p := range partitions {
		claim := a.claims[p]
		if claim == nil {
			if !a.consumer.status.isHalted(p) {
				a.fresh = append(a.fresh, p)
				a.goals.add(p)
			}
			continue
		}
		log, known := logs.Bounds[p]
		if claim.topic != logs.ID {
			replaced, err := a.consumer.cluster.Replaced(ctx, a.consumer.cfg.Topic, claim.topic)
			if err != nil {
				return err
			}
			if !replaced {
				return fmt.Errorf("brokers do not agree which topic %q is", a.consumer.cfg.Topic)
			}
			log.Replaced = true
		}
		if log.Replaced || known && (claim.next < log.Start || claim.next > log.End) {
			a.outside(ctx, p, claim.next, log)
			delete(a.claims, p)
			a.forgetBacklogs(p)
			continue
		}
		a.consumer.status.begin(p, claim.next, log.End)
		a.goals.add(p)
	}
	return nil
}

// takeOver waits for the rows as long as ctx lives: a stalled member may
// hold them until its session times out.
func (c *Consumer) takeOver(ctx context.Context, a *assignment, owner string, partitions []int, logs broker.TopicLogs) (map[int]error, error) {
	for failures := 1; ; failures++ {
		halted, err := c.takeOverOnce(ctx, a, owner, partitions, logs)
		if err == nil || ctx.Err() != nil {
			return halted, err
		}
		c.logger.Warn("cannot take the partitions over yet", "error", err)
		lifecycle.Pause(ctx, clock.Backoff(failures, 50*time.Millisecond, 2*time.Second))
	}
}

func (c *Consumer) takeOverOnce(ctx context.Context, a *assignment, owner string, partitions []int, logs broker.TopicLogs) (halted map[int]error, err error) {
	starts, reasons := make([]*int64, len(partitions)), make([]*string, len(partitions))
	for i, p := range partitions {
		if log, known := logs.Bounds[p]; known {
			starts[i], reasons[i] = &log.Start, c.lost(p, log)
		}
	}
	var accepted *string
	if reason := bus.ErrNeverRead.Error(); c.cfg.AcceptLost {
		accepted = &reason
	}
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	err = pgx.BeginFunc(ctx, c.cfg.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL lock_timeout = '5s'`); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, claimPositions, c.cfg.Group, c.cfg.Topic, partitions, starts, owner, [16]byte(logs.ID), reasons, accepted)
		if err != nil {
			return err
		}
		if halted, err = scanClaims(rows, a.claims); err != nil {
			return err
		}
		return a.takeBacklogs(ctx, tx)
	})
	if err != nil {
		return nil, fmt.Errorf("cannot claim positions of %q: %w", c.cfg.Group, err)
	}
	return halted, nil
}

// lost is why a partition that was never consumed can't begin
// where its log does; nil where it can.
func (c *Consumer) lost(partition int, log broker.LogBounds) *string {
	if log.Start == 0 || c.cfg.AcceptLost {
		return nil
	}
	reason := fmt.Sprintf("%s: %q has never read partition %d of %q, whose log begins at %d, so offsets 0 to %d are missing; "+
		"restore the database from a backup of when it had read them, or accept the loss (WEIR_ACCEPT_LOST_RECORDS=true) to begin at %d",
		bus.ErrNeverRead, c.cfg.Group, partition, c.cfg.Topic, log.Start, log.Start-1, log.Start)
	return &reason
}

func scanClaims(rows pgx.Rows, claims map[int]*claimed) (map[int]error, error) {
	halted := make(map[int]error)
	var partition int
	var next, epoch int64
	var reason string
	var topic [16]byte
	_, err := pgx.ForEachRow(rows, []any{&partition, &next, &epoch, &reason, &topic}, func() error {
		if reason != "" {
			halted[partition] = errors.New(reason)
			return nil
		}
		claims[partition] = &claimed{next, epoch, topic}
		return nil
	})
	return halted, err
}

// halt stops a partition in the database and in Ready.
func (c *Consumer) halt(ctx context.Context, partition int, epoch int64, reason error) error {
	c.logger.Error("partition stopped", "partition", partition, "error", reason)
	c.status.halt(partition, reason)
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	_, err := c.cfg.Pool.Exec(ctx, `UPDATE bus_positions SET halted = $5, updated_at = now()
		WHERE group_name = $1 AND topic = $2 AND partition = $3 AND epoch = $4`, c.cfg.Group, c.cfg.Topic, partition, epoch, reason.Error())
	return err
}
