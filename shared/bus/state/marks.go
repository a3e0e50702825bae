package state

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
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
	for p, log := range logs.Bounds {
		from, after := s.next[p], (*time.Time)(nil)
		if open := s.sweeps[p]; open != nil {
			after = open.after
		}
		if logs.ID != s.id {
			from, after = log.Start, s.newer()
		}
		s.ids[p] = logs.ID
		s.sweep(p, from, log, after)
	}
	s.id = logs.ID
	return nil
}

// sweep begins a second reading of a partition. The caller holds the lock.
func (s *Reader) sweep(partition int, from int64, log broker.LogBounds, after *time.Time) {
	stale := make(map[string]int64, len(s.held[partition]))
	for key, h := range s.held[partition] {
		if stale[key] = h.offset; from == log.Start {
			stale[key] = log.Start // these offsets have other records now
		}
	}
	s.swept[partition] = s.cfg.Clock()
	s.next[partition], s.sweeps[partition] = log.Start, &sweep{from: from, until: log.End, stale: stale, after: after}
	if log.Gone || s.sweeps[partition].over(log.Start, s.marker) {
		s.finish(partition, s.sweeps[partition])
	}
}

// finish removes keys that the log no longer has. The caller holds the lock.
func (s *Reader) finish(partition int, sweep *sweep) {
	delete(s.sweeps, partition)
	if len(sweep.stale) > 0 {
		s.logger.Warn("state was deleted whose deletion was not read in time", "keys", len(sweep.stale))
	}
	for _, key := range slices.Sorted(maps.Keys(sweep.stale)) {
		s.take(bus.Record{Topic: s.cfg.Topic, Partition: partition, Offset: sweep.until, Key: []byte(key)})
	}
}

// forget drops a partition that the topic no longer has, so that
// nothing waits for it. The caller holds the lock.
func (s *Reader) forget(partition int) {
	delete(s.next, partition)
	delete(s.last, partition)
	delete(s.ids, partition)
	delete(s.confirmed, partition)
	delete(s.swept, partition)
	delete(s.held, partition)
}

// Complete returns nil once Ready is closed, unless the log lost its end
// before this start, and its owner has not published that again yet.
func (s *Reader) Complete() error {
	select {
	case <-s.ready:
	default:
		return fmt.Errorf("%s is not read yet", s.cfg.Topic)
	}
	if s.lost.Load() != nil {
		return fmt.Errorf("%s has lost records that were read before, and waits until its owner publishes them again", s.cfg.Topic)
	}
	return nil
}

// Whole returns nil while the state is that of the whole log: it is
// ready, and no log that was cut or replaced is read again.
func (s *Reader) Whole() error {
	s.mu.Lock()
	again := len(s.sweeps) > 0
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
	for _, sweep := range s.sweeps {
		if sweep.after != nil && !s.marker.After(*sweep.after) {
			return true
		}
	}
	return s.lost.Load() != nil
}

// Age returns how long ago the brokers last confirmed that the state is
// complete; 0 before it is ready. While they answer it is below a
// second; earlier changes are surely in the state.
func (s *Reader) Age() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.missing) > 0 {
		return 0
	}
	var oldest time.Duration
	for p := range s.next {
		oldest = max(oldest, s.cfg.Clock().Sub(s.asOf(p)))
	}
	return oldest
}

// asOf returns when a partition was last confirmed as read to its end:
// before its first answer, when the reader asked for that end. The
// caller holds the lock.
func (s *Reader) asOf(partition int) time.Time {
	if at, ever := s.confirmed[partition]; ever {
		return at
	}
	return s.begun
}

// confirm notes that a partition was read to its end.
func (s *Reader) confirm(partition int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.confirmed[partition] = s.cfg.Clock()
}

// errStale means that the state was unconfirmed for so long that the
// log may have lost deletions.
var errStale = errors.New("the state was not confirmed complete for too long")

// minStaleness is the least age of a stale state, however short the
// topic's retention of tombstones.
const minStaleness = time.Minute

// stale reports whether a tombstone may have come and gone since the
// partition was last read to its end.
func (s *Reader) stale(c follow.Chunk) bool {
	at, ever := s.confirmed[c.Partition]
	if swept := s.swept[c.Partition]; swept.After(at) {
		at = swept
	}
	if !ever || s.sweeps[c.Partition] != nil || c.Next == s.next[c.Partition] || !s.settings.Compacted {
		return false
	}
	unconfirmed := s.cfg.Clock().Round(0).Sub(at.Round(0)) // by the wall clock: a machine that sleeps confirms nothing
	return unconfirmed > max(s.settings.Memory(), minStaleness)
}
