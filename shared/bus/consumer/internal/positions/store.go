package positions

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/wire"
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

const (
	asSystem = `SELECT set_config('weir.organization', '*', true)`
	// asNobody undoes asSystem: a handler itself chooses the rows that it sees.
	asNobody       = `SELECT set_config('weir.organization', '', true)`
	setIdleTimeout = `SELECT set_config('idle_in_transaction_session_timeout', $1, true)`
)

// AsSystem lets a transaction see the rows of all organizations.
func AsSystem(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, asSystem)
	return err
}

// AsNobody lets it see no organization's rows again.
func AsNobody(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, asNobody)
	return err
}

// Bounded returns a context with the store's timeout.
func (s *Store) Bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.Timeout)
}

// Read runs a transaction of the system that only reads.
func (s *Store) Read(ctx context.Context, do func(context.Context, pgx.Tx) error) error {
	ctx, cancel := s.Bounded(ctx)
	defer cancel()
	return pgx.BeginTxFunc(ctx, s.Pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if err := AsSystem(ctx, tx); err != nil {
			return err
		}
		return do(ctx, tx)
	})
}

// Write runs a transaction of the system.
func (s *Store) Write(ctx context.Context, do func(context.Context, pgx.Tx) error) error {
	ctx, cancel := s.Bounded(ctx)
	defer cancel()
	return pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT set_config('weir.organization', '*', true), set_config('idle_in_transaction_session_timeout', $1, true)`,
			s.idleTimeout()); err != nil {
			return err
		}
		return do(ctx, tx)
	})
}

// idleTimeout returns IdleTimeout in the database's format.
func (s *Store) idleTimeout() string { return strconv.FormatInt(s.IdleTimeout.Milliseconds(), 10) }

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
