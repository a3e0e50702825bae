package state

import (
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/broker"
	"github.com/weirlog/weir/shared/bus/internal/follow"
	"github.com/weirlog/weir/shared/bus/internal/wire"
)

// A reading is what was read of a topic so far. It has no lock: its
// reader does.
type reading struct {
	cfg        Config
	logger     *slog.Logger
	settings   broker.TopicSettings // at the start
	passedOver prometheus.Counter
	marker     marker

	id      wire.TopicID // of the topic
	begun   time.Time    // when the brokers were asked for the logs' ends
	parts   map[int]*part
	changes int // how often what they hold has changed
}

// A part is what was read of one partition.
type part struct {
	topic     wire.TopicID // when it was read
	next      int64
	last      lastRead
	seen      bool            // last is known
	missing   int64           // the first known end of its log, until that is reached; then 0
	confirmed time.Time       // when it was last read to its end; zero: never
	swept     time.Time       // when the last sweep began
	held      map[string]held // of a compacted topic, by key; bounded by the state
	sweep     *sweep
}

// asOf returns when a partition was last confirmed as read to its end:
// before its first answer, when the reader asked for that end.
func (p *part) asOf(begun time.Time) time.Time {
	if p.confirmed.IsZero() {
		return begun
	}
	return p.confirmed
}

// of returns what was read of a partition.
func (s *reading) of(partition int) *part {
	p := s.parts[partition]
	if p == nil {
		p = &part{last: lastRead{offset: -1}, held: make(map[string]held)}
		s.parts[partition] = p
	}
	return p
}

// expect sets the goal: all is read once every partition has reached its
// log's present end.
func (s *reading) expect(logs broker.TopicLogs, begun time.Time) {
	s.begun, s.id = begun, logs.ID
	clear(s.parts)
	for n, log := range logs.Bounds {
		p := s.of(n)
		p.next, p.topic = log.Start, logs.ID
		if log.End > log.Start {
			p.missing = log.End
		}
	}
}

// reached reports whether nothing is missing.
func (s *reading) reached() bool {
	for _, p := range s.parts {
		if p.missing > 0 {
			return false
		}
	}
	return true
}

// next returns where each partition is to be read on.
func (s *reading) next() map[int]int64 {
	next := make(map[int]int64, len(s.parts))
	for n, p := range s.parts {
		next[n] = p.next
	}
	return next
}

// add takes what comes next in a partition.
func (s *reading) add(c follow.Chunk) error {
	p := s.of(c.Partition)
	if s.stale(p, c) {
		return errStale
	}
	for _, r := range c.Records {
		s.take(p, r)
	}
	p.next = c.Next
	if n := len(c.Records); n > 0 {
		newest := c.Records[n-1]
		p.last, p.seen = lastRead{newest.Offset, newest.Mark().Sum}, true
	}
	if p.sweep != nil && p.sweep.over(c.Next, s.marker.newest) {
		s.finish(c.Partition, p)
	}
	if c.Next >= p.missing {
		p.missing = 0
	}
	return nil
}

// take applies one record unless a sweep finds that it was applied before.
func (s *reading) take(p *part, r bus.Record) {
	if sweep := p.sweep; sweep != nil {
		if at, stale := sweep.stale[string(r.Key)]; stale && r.Offset >= at {
			delete(sweep.stale, string(r.Key))
		}
		if r.Offset < sweep.from {
			return
		}
	}
	r = r.Detached() // the next answer reuses the memory
	if s.settings.Compacted {
		s.note(p, r)
	}
	s.applyRecord(r)
}

func (s *reading) applyRecord(r bus.Record) {
	s.marker.see(r)
	if err := s.cfg.Apply(r); err != nil {
		s.passedOver.Inc()
		s.logger.Error("cannot apply a record of state", "partition", r.Partition, "offset", r.Offset, "error", err)
	}
}

// note keeps the newest record of a key.
func (s *reading) note(p *part, r bus.Record) {
	s.changes++
	switch {
	case r.Key == nil:
	case r.Value == nil:
		delete(p.held, string(r.Key))
	case s.cfg.keeps(s.settings):
		p.held[string(r.Key)] = pack(r)
	default:
		p.held[string(r.Key)] = held{offset: r.Offset}
	}
}

// restore takes a snapshot.
func (s *reading) restore(snap snapshot) {
	for _, kept := range snap.parts {
		p := s.of(kept.partition)
		for _, h := range kept.records {
			r := h.record(snap.topic, kept.partition)
			s.changes++
			p.held[string(r.Key)] = h
			s.applyRecord(r)
		}
		p.next, p.confirmed, p.last, p.seen = kept.next, snap.taken, kept.last, true
		if kept.next >= p.missing {
			p.missing = 0
		}
	}
}

// snapshot returns the state if it is complete.
func (s *reading) snapshot() (snap snapshot, ok bool) {
	if !s.reached() || s.sweeping() || len(s.parts) == 0 {
		return snapshot{}, false
	}
	snap = snapshot{topic: s.cfg.Topic, id: s.id}
	for _, n := range slices.Sorted(maps.Keys(s.parts)) {
		p := s.parts[n]
		if p.topic != s.id {
			return snapshot{}, false
		}
		at := p.asOf(s.begun)
		if snap.taken.IsZero() || at.Before(snap.taken) {
			snap.taken = at
		}
		snap.parts = append(snap.parts, snapshotPart{partition: n, next: p.next, last: p.last, records: slices.Collect(maps.Values(p.held))})
	}
	return snap, true
}

// marks returns how far the topic is read.
func (s *reading) marks() (read []readMark) {
	for n, p := range s.parts {
		if p.seen {
			read = append(read, readMark{n, p.topic, p.last.offset, int64(p.last.sum), s.marker.newest})
		}
	}
	slices.SortFunc(read, func(a, b readMark) int { return a.Partition - b.Partition })
	return read
}

// age returns how long ago the brokers last confirmed that the state is
// complete; 0 before it is.
func (s *reading) age() (oldest time.Duration) {
	if !s.reached() {
		return 0
	}
	for _, p := range s.parts {
		oldest = max(oldest, s.cfg.Clock().Sub(p.asOf(s.begun)))
	}
	return oldest
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

// restart reads a log that was cut or replaced again from its start,
// where a compacted topic holds all state, and removes keys of the old
// log alone.
func (s *reading) restart(partition int, log broker.LogBounds) {
	p := s.of(partition)
	if log.Replaced {
		s.id, p.topic = log.Topic, log.Topic
	}
	s.sweep(partition, p, log.Start, log, s.marker.newer())
	if p.missing > 0 {
		p.missing = log.End
	}
	if p.missing <= log.Start {
		p.missing = 0
	}
	if log.Gone { // nothing is to wait for it
		delete(s.parts, partition)
	}
}

// again reads all logs again, and removes what was deleted meanwhile.
func (s *reading) again(logs broker.TopicLogs) {
	for n, log := range logs.Bounds {
		p := s.of(n)
		from, after := p.next, (*time.Time)(nil)
		if p.sweep != nil {
			after = p.sweep.after
		}
		if logs.ID != s.id {
			from, after = log.Start, s.marker.newer()
		}
		p.topic = logs.ID
		s.sweep(n, p, from, log, after)
	}
	s.id = logs.ID
}

// sweep begins a second reading of a partition.
func (s *reading) sweep(partition int, p *part, from int64, log broker.LogBounds, after *time.Time) {
	stale := make(map[string]int64, len(p.held))
	for key, h := range p.held {
		if stale[key] = h.offset; from == log.Start {
			stale[key] = log.Start // these offsets have other records now
		}
	}
	p.swept = s.cfg.Clock()
	p.next, p.sweep = log.Start, &sweep{from: from, until: log.End, stale: stale, after: after}
	if log.Gone || p.sweep.over(log.Start, s.marker.newest) {
		s.finish(partition, p)
	}
}

// finish removes keys that the log no longer has.
func (s *reading) finish(partition int, p *part) {
	sweep := p.sweep
	p.sweep = nil
	if len(sweep.stale) > 0 {
		s.logger.Warn("state was deleted whose deletion was not read in time", "keys", len(sweep.stale))
	}
	for _, key := range slices.Sorted(maps.Keys(sweep.stale)) {
		s.take(p, bus.Record{Topic: s.cfg.Topic, Partition: partition, Offset: sweep.until, Key: []byte(key)})
	}
}

// sweeping reports whether a partition is read again.
func (s *reading) sweeping() bool {
	for _, p := range s.parts {
		if p.sweep != nil {
			return true
		}
	}
	return false
}

// lacks reports whether the log is known to have lost records that its
// owner is not known to have published again.
func (s *reading) lacks() bool {
	for _, p := range s.parts {
		if p.sweep != nil && p.sweep.after != nil && !s.marker.newest.After(*p.sweep.after) {
			return true
		}
	}
	return s.marker.lost.Load() != nil
}

// errStale means that the state was unconfirmed for so long that the
// log may have lost deletions.
var errStale = errors.New("the state was not confirmed complete for too long")

// minStaleness is the least age of a stale state, however short the
// topic's retention of tombstones.
const minStaleness = time.Minute

// stale reports whether a tombstone may have come and gone since the
// partition was last read to its end.
func (s *reading) stale(p *part, c follow.Chunk) bool {
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

// A marker is the record by which a topic's owner says that it has
// published again what the log had lost.
type marker struct {
	key    string // empty: there is none
	logger *slog.Logger
	newest time.Time                 // when the newest was published
	lost   atomic.Pointer[time.Time] // the log lost its end before this start: one newer than this is awaited; nil: it did not
}

// see notes a marker. What the log lost at its end precedes the first
// newer one.
func (m *marker) see(r bus.Record) {
	if m.key == "" || string(r.Key) != m.key || !r.Time.After(m.newest) {
		return
	}
	m.newest = r.Time
	m.repair()
}

// await waits for a marker newer than after.
func (m *marker) await(after *time.Time) {
	m.lost.Store(after)
	m.repair()
}

// repair ends the wait for a marker.
func (m *marker) repair() {
	if after := m.lost.Load(); after != nil && m.newest.After(*after) {
		m.logger.Info("what the state topic had lost is published again")
		m.lost.Store(nil)
	}
}

// newer returns the time that a marker must be after, if what the log
// just lost is to precede it.
func (m *marker) newer() *time.Time {
	if m.key == "" {
		return nil
	}
	after := m.newest
	return &after
}
