package state

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/wire"
	"github.com/weirlog/weir/shared/bus/logrange"
	"github.com/weirlog/weir/shared/lifecycle"
)

const (
	marksInterval = time.Second // between writes of how far a topic was read
	marksTimeout  = 2 * time.Second
)

// marks are how far earlier starts, other processes and this one have
// read a topic, as the database knows it.
type marks struct {
	cfg      Config
	logger   *slog.Logger
	store    *pgxpool.Pool // nil: they are not kept
	compared bool          // with the log; nothing is written before
	written  []readMark
	news     chan struct{} // perhaps there is something to write
}

// A readMark is a row of bus_read.
type readMark struct {
	Partition   int
	TopicID     wire.TopicID
	Offset, Sum int64     // of the last record
	MarkedAt    time.Time // of the newest marker up to there
}

func newMarks(cfg Config, logger *slog.Logger) *marks {
	m := &marks{cfg: cfg, logger: logger, news: make(chan struct{}, 1)}
	if cfg.Marker != "" {
		m.store = cfg.Pool
	}
	return m
}

func (m *marks) signal() {
	select {
	case m.news <- struct{}{}:
	default:
	}
}

// errMarksAway means that the database did not say how far the topic was read.
var errMarksAway = errors.New("cannot see how far the topic was read before")

// compare compares what was read before with the log, once. If that lost
// it, a marker newer than the returned time has it again.
func (m *marks) compare(ctx context.Context) (after *time.Time, err error) {
	if m.store == nil || m.compared {
		return nil, nil
	}
	read, err := m.read(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errMarksAway, err)
	}
	lost, err := m.missingOf(ctx, read)
	if err != nil {
		return nil, err
	}
	m.compared = true
	if lost == nil {
		return nil, nil
	}
	m.logger.Error("state topic has lost its end: nothing counts until its owner has published that again", "lost", lost)
	newest := slices.MaxFunc(read, func(a, b readMark) int { return a.MarkedAt.Compare(b.MarkedAt) })
	return &newest.MarkedAt, nil
}

func (m *marks) read(ctx context.Context) ([]readMark, error) {
	ctx, cancel := context.WithTimeout(ctx, marksTimeout)
	defer cancel()
	rows, err := m.store.Query(ctx, `SELECT partition, topic_id, last_offset, last_sum, marked_at FROM bus_read WHERE topic = $1`, m.cfg.Topic)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[readMark])
}

// missingOf returns what the log lacks of what was read; nil: nothing.
func (m *marks) missingOf(ctx context.Context, read []readMark) (lost, err error) {
	log := logrange.Reader{Brokers: m.cfg.Brokers, Dialer: m.cfg.Dialer, Topic: m.cfg.Topic}
	id, _, err := log.Bounds(ctx)
	if err != nil {
		return nil, err
	}
	for _, mark := range read {
		if mark.TopicID != id {
			return bus.ErrTopicReplaced, nil
		}
		kept, err := log.Keeps(ctx, mark.Partition, bus.Mark{Offset: mark.Offset, Sum: uint32(mark.Sum)}) //nolint:gosec // it was one
		switch {
		case errors.Is(err, bus.ErrOutsideLog):
			return err, nil
		case err != nil:
			return nil, err
		case !kept:
			return fmt.Errorf("partition %d: %w: at %d", mark.Partition, bus.ErrLogDiffers, mark.Offset), nil
		}
	}
	return nil, nil
}

// keep calls mark, which writes, soon after each signal and at the end,
// until ctx ends.
func (m *marks) keep(ctx context.Context, mark func(ctx context.Context) error) {
	m.signal()
	for over := false; !over; {
		select {
		case <-m.news:
		case <-ctx.Done():
		}
		over = ctx.Err() != nil
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), marksTimeout)
		if err := mark(bounded); err != nil {
			m.logger.Debug("cannot keep how far the topic was read", "error", err)
			m.signal()
		}
		cancel()
		lifecycle.Pause(ctx, marksInterval)
	}
}

// write writes how far the topic was read, if that has changed; nil: it
// is not known to be whole.
func (m *marks) write(ctx context.Context, now []readMark) error {
	if now == nil || slices.Equal(now, m.written) {
		return nil
	}
	batch := &pgx.Batch{}
	for _, mark := range now {
		batch.Queue(`INSERT INTO bus_read AS b (topic, partition, topic_id, last_offset, last_sum, marked_at) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (topic, partition) DO UPDATE
			   SET topic_id = excluded.topic_id, last_offset = excluded.last_offset, last_sum = excluded.last_sum, marked_at = excluded.marked_at
			 WHERE b.topic_id <> excluded.topic_id OR b.last_offset < excluded.last_offset OR b.marked_at < excluded.marked_at`,
			m.cfg.Topic, mark.Partition, [16]byte(mark.TopicID), mark.Offset, mark.Sum, mark.MarkedAt)
	}
	if err := m.store.SendBatch(ctx, batch).Close(); err != nil {
		return err
	}
	m.written = now
	return nil
}
