package state

import (
	"context"
	"errors"
	"fmt"
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

func newMarks(cfg Config) marks {
	m := marks{news: make(chan struct{}, 1)}
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

// see notes a marker. What the log lost at its end precedes the first
// newer one. The caller holds the lock.
func (s *Reader) see(r bus.Record) {
	if s.cfg.Marker == "" || string(r.Key) != s.cfg.Marker || !r.Time.After(s.marker) {
		return
	}
	s.marker = r.Time
	s.repair()
}

// repair ends the wait for a marker. The caller holds the lock.
func (s *Reader) repair() {
	if after := s.lost.Load(); after != nil && s.marker.After(*after) {
		s.logger.Info("what the state topic had lost is published again")
		s.lost.Store(nil)
	}
}

// newer returns the time that a marker must be after, if what the log
// just lost is to precede it. The caller holds the lock.
func (s *Reader) newer() *time.Time {
	if s.cfg.Marker == "" {
		return nil
	}
	after := s.marker
	return &after
}

// errMarksAway means that the database did not say how far the topic was read.
var errMarksAway = errors.New("cannot see how far the topic was read before")

// recall compares what was read before with the log, once.
func (s *Reader) recall(ctx context.Context) error {
	if s.marks.store == nil || s.marks.compared {
		return nil
	}
	read, err := s.readMarks(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", errMarksAway, err)
	}
	lost, err := s.missingOf(ctx, read)
	if err != nil {
		return err
	}
	s.marks.compared = true
	if lost == nil {
		return nil
	}
	s.logger.Error("state topic has lost its end: nothing counts until its owner has published that again", "lost", lost)
	newest := slices.MaxFunc(read, func(a, b readMark) int { return a.MarkedAt.Compare(b.MarkedAt) })
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost.Store(&newest.MarkedAt)
	s.repair()
	return nil
}

func (s *Reader) readMarks(ctx context.Context) ([]readMark, error) {
	ctx, cancel := context.WithTimeout(ctx, marksTimeout)
	defer cancel()
	rows, err := s.marks.store.Query(ctx, `SELECT partition, topic_id, last_offset, last_sum, marked_at FROM bus_read WHERE topic = $1`, s.cfg.Topic)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[readMark])
}

// missingOf returns what the log lacks of what was read; nil: nothing.
func (s *Reader) missingOf(ctx context.Context, read []readMark) (lost, err error) {
	log := logrange.Reader{Brokers: s.cfg.Brokers, Dialer: s.cfg.Dialer, Topic: s.cfg.Topic}
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

// keepMarks writes how far the topic was read, soon after a record comes
// and at the end, until ctx ends.
func (s *Reader) keepMarks(ctx context.Context) {
	s.marks.signal()
	for over := false; !over; {
		select {
		case <-s.marks.news:
		case <-ctx.Done():
		}
		over = ctx.Err() != nil
		if err := s.mark(context.WithoutCancel(ctx)); err != nil {
			s.logger.Debug("cannot keep how far the topic was read", "error", err)
			s.marks.signal()
		}
		lifecycle.Pause(ctx, marksInterval)
	}
}

// mark writes how far the topic was read, if that has changed and the
// log lacks nothing.
func (s *Reader) mark(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, marksTimeout)
	defer cancel()
	if err := s.recall(ctx); err != nil {
		return err
	}
	now := s.read()
	if now == nil || slices.Equal(now, s.marks.written) {
		return nil
	}
	batch := &pgx.Batch{}
	for _, mark := range now {
		batch.Queue(`INSERT INTO bus_read AS b (topic, partition, topic_id, last_offset, last_sum, marked_at) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (topic, partition) DO UPDATE
			   SET topic_id = excluded.topic_id, last_offset = excluded.last_offset, last_sum = excluded.last_sum, marked_at = excluded.marked_at
			 WHERE b.topic_id <> excluded.topic_id OR b.last_offset < excluded.last_offset OR b.marked_at < excluded.marked_at`,
			s.cfg.Topic, mark.Partition, [16]byte(mark.TopicID), mark.Offset, mark.Sum, mark.MarkedAt)
	}
	if err := s.marks.store.SendBatch(ctx, batch).Close(); err != nil {
		return err
	}
	s.marks.written = now
	return nil
}

// read returns how far the topic is read; nil while it is not known to be
// whole.
func (s *Reader) read() (read []readMark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sweeps) > 0 || s.Complete() != nil {
		return nil
	}
	for partition, last := range s.last {
		read = append(read, readMark{partition, s.ids[partition], last.offset, int64(last.sum), s.marker})
	}
	slices.SortFunc(read, func(a, b readMark) int { return a.Partition - b.Partition })
	return read
}
