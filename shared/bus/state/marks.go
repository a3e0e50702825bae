package state

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/broker"
	"github.com/weirlog/weir/shared/bus/internal/follow"
	"github.com/weirlog/weir/shared/bus/internal/wire"
	"github.com/weirlog/weir/shared/bus/logrange"
	"github.com/weirlog/weir/shared/lifecycle"
)

const (
	marksInterval = time.Second // between writes of how far a topic was read
	marksTimeout  = 2 * time.Second
)

// marks are how far earlier starts, other processes and this one have
// read a topic, as the database knows it, and what its owner has marked.
type marks struct {
	cfg      Config
	logger   *slog.Logger
	store    *pgxpool.Pool // nil: they are not kept
	compared bool          // with the log; nothing is written before
	written  []readMark
	news     chan struct{} // perhaps there is something to write

	newest time.Time                 // when the newest marker was published; with the reader's lock
	lost   atomic.Pointer[time.Time] // the log lost its end before this start: a marker newer than this is awaited; nil: it did not
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

// see notes a marker. What the log lost at its end precedes the first
// newer one. The caller holds the lock.
func (m *marks) see(r bus.Record) {
	if m.cfg.Marker == "" || string(r.Key) != m.cfg.Marker || !r.Time.After(m.newest) {
		return
	}
	m.newest = r.Time
	m.repair()
}

// repair ends the wait for a marker. The caller holds the lock.
func (m *marks) repair() {
	if after := m.lost.Load(); after != nil && m.newest.After(*after) {
		m.logger.Info("what the state topic had lost is published again")
		m.lost.Store(nil)
	}
}

// newer returns the time that a marker must be after, if what the log
// just lost is to precede it. The caller holds the lock.
func (m *marks) newer() *time.Time {
	if m.cfg.Marker == "" {
		return nil
	}
	after := m.newest
	return &after
}

// errMarksAway means that the database did not say how far the topic was read.
var errMarksAway = errors.New("cannot see how far the topic was read before")

// recall compares what was read before with the log, once.
func (s *Reader) recall(ctx context.Context) error {
	after, err := s.marks.compare(ctx)
	if after == nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.marks.lost.Store(after)
	s.marks.repair()
	return nil
}

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
	return s.marks.write(ctx, now)
}

func (m *marks) write(ctx context.Context, now []readMark) error {
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

// read returns how far the topic is read; nil while it is not known to be
// whole.
func (s *Reader) read() (read []readMark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sweeping() || s.Complete() != nil {
		return nil
	}
	for n, p := range s.parts {
		if p.seen {
			read = append(read, readMark{n, p.topic, p.last.offset, int64(p.last.sum), s.marks.newest})
		}
	}
	slices.SortFunc(read, func(a, b readMark) int { return a.Partition - b.Partition })
	return read
}

// sweep is a second reading of a partition, to find keys that its log
// no longer has.
type sweep struct {
	from  int64 // earlier records were applied the first time
	until int64
	stale map[string]int64 // offsets of the keys not seen yet; bounded by the state

	after *time.Time // it lasts until a marker newer than this; nil: until all is read
}

// over reports whether all was read again, up to next, and what the log
// had lost was published again before the newest marker.
func (s *sweep) over(next int64, marker time.Time) bool {
	return next >= s.until && (s.after == nil || marker.After(*s.after))
}

// again makes the Reader read the whole log again, and removes what
// was deleted meanwhile.
func (s *Reader) again(ctx context.Context, c *broker.Cluster) error {
	logs, err := c.WholeTopic(ctx, s.cfg.Topic)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logger.Warn("the state was not confirmed complete for too long, reading it again from its start")
	for n, log := range logs.Bounds {
		p := s.of(n)
		from, after := p.next, (*time.Time)(nil)
		if p.sweep != nil {
			after = p.sweep.after
		}
		if logs.ID != s.id {
			from, after = log.Start, s.marks.newer()
		}
		p.topic = logs.ID
		s.sweep(n, p, from, log, after)
	}
	s.id = logs.ID
	return nil
}

// sweep begins a second reading of a partition. The caller holds the lock.
func (s *Reader) sweep(partition int, p *part, from int64, log broker.LogBounds, after *time.Time) {
	stale := make(map[string]int64, len(p.held))
	for key, h := range p.held {
		if stale[key] = h.offset; from == log.Start {
			stale[key] = log.Start // these offsets have other records now
		}
	}
	p.swept = s.cfg.Clock()
	p.next, p.sweep = log.Start, &sweep{from: from, until: log.End, stale: stale, after: after}
	if log.Gone || p.sweep.over(log.Start, s.marks.newest) {
		s.finish(partition, p)
	}
}

// finish removes keys that the log no longer has. The caller holds the lock.
func (s *Reader) finish(partition int, p *part) {
	sweep := p.sweep
	p.sweep = nil
	if len(sweep.stale) > 0 {
		s.logger.Warn("state was deleted whose deletion was not read in time", "keys", len(sweep.stale))
	}
	for _, key := range slices.Sorted(maps.Keys(sweep.stale)) {
		s.take(p, bus.Record{Topic: s.cfg.Topic, Partition: partition, Offset: sweep.until, Key: []byte(key)})
	}
}

// sweeping reports whether a partition is read again. The caller holds the lock.
func (s *Reader) sweeping() bool {
	for _, p := range s.parts {
		if p.sweep != nil {
			return true
		}
	}
	return false
}

// Complete returns nil once Ready is closed, unless the log lost its end
// before this start, and its owner has not published that again yet.
func (s *Reader) Complete() error {
	select {
	case <-s.ready:
	default:
		return fmt.Errorf("%s is not read yet", s.cfg.Topic)
	}
	if s.marks.lost.Load() != nil {
		return fmt.Errorf("%s has lost records that were read before, and waits until its owner publishes them again", s.cfg.Topic)
	}
	return nil
}

// Whole returns nil while the state is that of the whole log: it is
// ready, and no log that was cut or replaced is read again.
func (s *Reader) Whole() error {
	s.mu.Lock()
	again := s.sweeping()
	s.mu.Unlock()
	if again {
		return fmt.Errorf("%s is read again", s.cfg.Topic)
	}
	return s.Complete()
}

// Lacks reports whether the log is known to have lost records, and its
// owner is not known to have published them again.
func (s *Reader) Lacks() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.parts {
		if p.sweep != nil && p.sweep.after != nil && !s.marks.newest.After(*p.sweep.after) {
			return true
		}
	}
	return s.marks.lost.Load() != nil
}

// Age returns how long ago the brokers last confirmed that the state is
// complete; 0 before it is ready. While they answer it is little more
// than fetchWait; earlier changes are surely in the state.
func (s *Reader) Age() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.reached() {
		return 0
	}
	var oldest time.Duration
	for _, p := range s.parts {
		oldest = max(oldest, s.cfg.Clock().Sub(p.asOf(s.begun)))
	}
	return oldest
}

// asOf returns when a partition was last confirmed as read to its end:
// before its first answer, when the reader asked for that end.
func (p *part) asOf(begun time.Time) time.Time {
	if p.confirmed.IsZero() {
		return begun
	}
	return p.confirmed
}

// confirm notes that a partition was read to its end.
func (s *Reader) confirm(partition int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.parts[partition]; p != nil {
		p.confirmed = s.cfg.Clock()
	}
}

// errStale means that the state was unconfirmed for so long that the
// log may have lost deletions.
var errStale = errors.New("the state was not confirmed complete for too long")

// minStaleness is the least age of a stale state, however short the
// topic's retention of tombstones.
const minStaleness = time.Minute

// stale reports whether a tombstone may have come and gone since the
// partition was last read to its end.
func (s *Reader) stale(p *part, c follow.Chunk) bool {
	at := p.confirmed
	if p.swept.After(at) {
		at = p.swept
	}
	if p.confirmed.IsZero() || p.sweep != nil || c.Next == p.next || !s.settings.Compacted {
		return false
	}
	unconfirmed := s.cfg.Clock().Round(0).Sub(at.Round(0)) // by the wall clock: a machine that sleeps confirms nothing
	return unconfirmed > max(s.settings.Memory(), minStaleness)
}
