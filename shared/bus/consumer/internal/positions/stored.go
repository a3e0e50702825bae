package positions

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/bus"
)

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
