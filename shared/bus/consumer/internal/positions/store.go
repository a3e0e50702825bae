package positions

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer/internal/lanes"
	"github.com/weirlog/weir/shared/bus/internal/broker"
	"github.com/weirlog/weir/shared/bus/internal/wire"
	"github.com/weirlog/weir/shared/pg"
)

// A Store keeps the positions of a group in a topic.
type Store struct {
	Pool         *pgxpool.Pool
	Group, Topic string
	Timeout      time.Duration // of all queries: a database may go silent without closing a connection
	IdleTimeout  time.Duration // after which the database ends the transaction of a stalled member
	Logger       *slog.Logger
}

// A Position is the group's next offset in a partition, under the epoch
// of the member that has it.
type Position struct {
	Next  int64
	Epoch int64
	Topic wire.TopicID
	Last  *bus.Mark // the last record before Next; nil: unknown
}

// Bounded returns a context with the store's timeout.
func (s *Store) Bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.Timeout)
}

// Read runs a transaction of the system that only reads.
func (s *Store) Read(ctx context.Context, do func(context.Context, pgx.Tx) error) error {
	ctx, cancel := s.Bounded(ctx)
	defer cancel()
	return pg.ReadAsSystem(ctx, s.Pool, func(tx pgx.Tx) error { return do(ctx, tx) })
}

// Write runs a transaction of the system, which the database ends if this
// member stalls: its successor waits no longer.
func (s *Store) Write(ctx context.Context, do func(context.Context, pgx.Tx) error) error {
	ctx, cancel := s.Bounded(ctx)
	defer cancel()
	return pg.InWatchedTxAsSystem(ctx, s.Pool, s.IdleTimeout, func(tx pgx.Tx) error { return do(ctx, tx) })
}

// Own locks a position and refuses, with bus.ErrFenced, a member that lost it.
func (s *Store) Own(ctx context.Context, tx pgx.Tx, partition int, epoch int64) error {
	tag, err := tx.Exec(ctx, `SELECT FROM bus_positions WHERE group_name = $1 AND topic = $2 AND partition = $3 AND epoch = $4 FOR UPDATE`,
		s.Group, s.Topic, partition, epoch)
	if err == nil && tag.RowsAffected() == 0 {
		err = fmt.Errorf("%w: partition %d", bus.ErrFenced, partition)
	}
	return err
}

// AllClaimed reports whether each of so many partitions of a topic was
// ever claimed. An operator resumes stopped ones.
func (s *Store) AllClaimed(ctx context.Context, topic wire.TopicID, partitions int) (bool, error) {
	ctx, cancel := s.Bounded(ctx)
	defer cancel()
	var n int
	err := s.Pool.QueryRow(ctx, `SELECT count(*) FROM bus_positions
		WHERE group_name = $1 AND topic = $2 AND partition < $3 AND (topic_id = $4 OR halted IS NOT NULL)`,
		s.Group, s.Topic, partitions, [16]byte(topic)).Scan(&n)
	return n == partitions, err
}

// Halt stores why a partition is stopped.
func (s *Store) Halt(ctx context.Context, partition int, epoch int64, reason error) error {
	ctx, cancel := s.Bounded(ctx)
	defer cancel()
	_, err := s.Pool.Exec(ctx, `UPDATE bus_positions SET halted = $5, updated_at = now()
		WHERE group_name = $1 AND topic = $2 AND partition = $3 AND epoch = $4`, s.Group, s.Topic, partition, epoch, reason.Error())
	return err
}

// Restart moves a position to the start of a topic's log, under the
// epoch of its partition.
func (s *Store) Restart(ctx context.Context, partition int, epoch, start int64, topic wire.TopicID) error {
	ctx, cancel := s.Bounded(ctx)
	defer cancel()
	tag, err := s.Pool.Exec(ctx, `UPDATE bus_positions
		SET next = $5, topic_id = $6, last_offset = NULL, last_sum = NULL, last_time = NULL, updated_at = now()
		WHERE group_name = $1 AND topic = $2 AND partition = $3 AND epoch = $4`, s.Group, s.Topic, partition, epoch, start, [16]byte(topic))
	if err == nil && tag.RowsAffected() == 0 {
		err = bus.ErrFenced
	}
	return err
}

// Stored is a row of bus_positions.
type Stored struct {
	Position

	Partition int
	Halted    error // why it is stopped; nil: it is not
}

// All returns the positions of all partitions, whichever process has them.
func (s *Store) All(ctx context.Context) ([]Stored, error) {
	ctx, cancel := s.Bounded(ctx)
	defer cancel()
	rows, err := s.Pool.Query(ctx, `SELECT partition, next, epoch, topic_id, last_offset, last_sum, last_time, coalesce(halted, '') FROM bus_positions
		WHERE group_name = $1 AND topic = $2 ORDER BY 1`, s.Group, s.Topic)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanStored)
}

func scanStored(row pgx.CollectableRow) (s Stored, err error) {
	var topic *[16]byte
	var offset, sum *int64
	var at *time.Time
	var reason string
	err = row.Scan(&s.Partition, &s.Next, &s.Epoch, &topic, &offset, &sum, &at, &reason)
	if topic != nil {
		s.Topic = *topic
	}
	if offset != nil && sum != nil && at != nil {
		s.Last = &bus.Mark{Offset: *offset, Time: *at, Sum: uint32(*sum)} //nolint:gosec // it was one
	}
	if reason != "" {
		s.Halted = errors.New(reason)
	}
	return s, err
}

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
	err = pg.InTxAsSystem(ctx, s.Pool, func(tx pgx.Tx) error {
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
