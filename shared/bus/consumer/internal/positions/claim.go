package positions

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer/internal/lanes"
	"github.com/weirlog/weir/shared/bus/internal/broker"
)

// claimPositions takes a partition without a start only if it was
// consumed before. A new partition with a reason is stopped. If the
// loss is accepted there is no reason, and a partition stopped for it
// ($8) continues at the start of its log.
const claimPositions = `
INSERT INTO bus_positions (group_name, topic, partition, next, epoch, owner, topic_id, halted)
SELECT $1, $2, p, coalesce(s, 0), 1, $5, $6, reason FROM unnest($3::integer[], $4::bigint[], $7::text[]) AS t(p, s, reason)
 WHERE s IS NOT NULL OR EXISTS (SELECT FROM bus_positions WHERE group_name = $1 AND topic = $2 AND partition = p) ORDER BY p
ON CONFLICT (group_name, topic, partition) DO UPDATE
   SET epoch = bus_positions.epoch + 1, owner = excluded.owner, topic_id = coalesce(bus_positions.topic_id, excluded.topic_id), updated_at = now(),
       next = CASE WHEN starts_with(bus_positions.halted, $8) AND excluded.next > 0 THEN excluded.next ELSE bus_positions.next END,
       halted = CASE WHEN starts_with(bus_positions.halted, $8) AND excluded.next > 0 THEN NULL ELSE bus_positions.halted END
RETURNING partition, next, epoch, topic_id, last_offset, last_sum, last_time, coalesce(halted, '')`

// A Claim is what a member takes over.
type Claim struct {
	Owner      string // the member
	Partitions []int
	Logs       broker.TopicLogs
	AcceptLost bool // a partition never read may begin after the lost beginning of its log
}

// Claimed is what the member got.
type Claimed struct {
	Positions map[int]*Position
	Halted    map[int]error // partitions that are stopped
	Backlogs  lanes.Backlogs
}

// Claim takes positions over under new epochs, with the backlogs of
// their lanes. It waits some seconds for a working member.
func (s *Store) Claim(ctx context.Context, c Claim) (claimed Claimed, err error) {
	starts, reasons := make([]*int64, len(c.Partitions)), make([]*string, len(c.Partitions))
	for i, p := range c.Partitions {
		if log, known := c.Logs.Bounds[p]; known {
			starts[i], reasons[i] = &log.Start, s.lost(c, p, log)
		}
	}
	var accepted *string
	if reason := bus.ErrNeverRead.Error(); c.AcceptLost {
		accepted = &reason
	}
	ctx, cancel := s.Bounded(ctx)
	defer cancel()
	err = pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL lock_timeout = '5s'`); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, claimPositions, s.Group, s.Topic, c.Partitions, starts, c.Owner, [16]byte(c.Logs.ID), reasons, accepted)
		if err != nil {
			return err
		}
		if claimed, err = scanClaimed(rows); err != nil {
			return err
		}
		claimed.Backlogs, err = s.takeBacklogs(ctx, tx, claimed.Positions)
		return err
	})
	if err != nil {
		return claimed, fmt.Errorf("cannot claim positions of %q: %w", s.Group, err)
	}
	return claimed, nil
}

// lost returns why a partition never consumed can't begin at the start
// of its log; nil if it can.
func (s *Store) lost(c Claim, partition int, log broker.LogBounds) *string {
	if log.Start == 0 || c.AcceptLost {
		return nil
	}
	reason := fmt.Sprintf("%s: %q has never read partition %d of %q, whose log begins at %d, so offsets 0 to %d are missing; "+
		"restore the database from a backup of when it had read them, or accept the loss (WEIR_ACCEPT_LOST_RECORDS=true) to begin at %d",
		bus.ErrNeverRead, s.Group, partition, s.Topic, log.Start, log.Start-1, log.Start)
	return &reason
}

func scanClaimed(rows pgx.Rows) (Claimed, error) {
	claimed := Claimed{Positions: make(map[int]*Position), Halted: make(map[int]error)}
	all, err := pgx.CollectRows(rows, scanStored)
	for _, s := range all {
		if s.Halted != nil {
			claimed.Halted[s.Partition] = s.Halted
			continue
		}
		claimed.Positions[s.Partition] = &s.Position
	}
	return claimed, err
}

// takeBacklogs reads the backlogs of claimed partitions. Those of a
// replaced topic are dropped once the positions are set to the new one.
func (s *Store) takeBacklogs(ctx context.Context, tx pgx.Tx, claimed map[int]*Position) (lanes.Backlogs, error) {
	if err := AsSystem(ctx, tx); err != nil {
		return nil, err
	}
	found, err := s.Backlogs(ctx, tx, slices.Sorted(maps.Keys(claimed)))
	if err != nil {
		return nil, err
	}
	all := make(lanes.Backlogs, len(found))
	for _, b := range found {
		if b.Topic != claimed[b.Partition].Topic {
			err = errors.Join(err, s.drop(ctx, tx, b))
			continue
		}
		all[b.Key] = b
	}
	return all, err
}
