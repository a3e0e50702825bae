package storage

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/batch"
)

// Compact drops the records of compacted topics that newer ones of the
// same key have replaced, and old tombstones. Records can be appended
// and read meanwhile.
func (s *Store) Compact(now time.Time) (err error) {
	for _, t := range s.Topics() {
		if !t.Compacted() {
			continue
		}
		for _, p := range t.Partitions() {
			err = errors.Join(err, compact(p, now))
		}
	}
	return errors.Join(err, s.writeCheckpoint())
}

// CompactedBytes returns the size of the compacted topics' files.
func (s *Store) CompactedBytes() (n int64) {
	for _, t := range s.Topics() {
		if !t.Compacted() {
			continue
		}
		for _, p := range t.Partitions() {
			n += p.Bytes()
		}
	}
	return n
}

// compact merges all files into one, up to what is appended meanwhile,
// and puts it in place of the first. A crash leaves the old files, or
// the merged one and some that it makes superfluous.
func compact(p *Partition, now time.Time) error {
	p.rewriting.Lock()
	defer p.rewriting.Unlock()
	c, err := newCompacting(p, now)
	if err != nil || c == nil {
		return err
	}
	if err := c.readKeys(); err != nil {
		return err
	}
	return c.replace(c.keep, func() error { return c.fill(c.end) }, func() { p.compactions.note(c.end, millis(now)) })
}

// maxCompactions is how many are known: enough for tombstones to go in time.
const maxCompactions = 100

// compactions are what is known of earlier ones, oldest first.
type compactions []compaction

// A compaction says at which time all
// records before an offset were compacted.
type compaction struct {
	Before int64 `json:"before"`
	At     int64 `json:"at"` // milliseconds
}

func (c *compactions) note(before, at int64) {
	*c = append((*c)[:min(len(*c), maxCompactions-1)], compaction{before, at})
}

// until forgets the ones before the last that is as old, and returns the
// offset before which that one compacted; 0 without one.
func (c *compactions) until(at int64) (offset int64) {
	for len(*c) > 1 && (*c)[0].At <= at && (*c)[1].At <= at {
		*c = (*c)[1:]
	}
	if len(*c) > 0 && (*c)[0].At <= at {
		offset = (*c)[0].Before
	}
	return offset
}

// A merge makes one segment of some.
type merge struct {
	of       *Partition
	first    int // index of the first of them
	segments []*segment
	end      int64 // of the last of them
	path     string
	merged   *segment
	gap      int64 // first offset not written yet
}

// newMerge returns a merge of all segments from the one of an index up to
// the last, into which records are appended.
func newMerge(p *Partition, first int) merge {
	last := len(p.segments) - 1
	base := p.segments[first]
	return merge{
		of: p, first: first, segments: p.segments[first:last:last], end: p.last().base,
		path: strings.TrimSuffix(base.path, segmentSuffix) + ".new", gap: base.base,
	}
}

// A compacting is a merge that drops records.
type compacting struct {
	merge
	newest map[string]int64 // offset of each key's last record, bounded by the topic's keys
	lasts  map[int64]int64  // end of each producer's last batch, bounded by producerExpiry
	forget int64            // tombstones before this offset go
}

// newCompacting returns nil if there is nothing to compact.
func newCompacting(p *Partition, now time.Time) (*compacting, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.segments) == 0 || p.writable() != nil {
		return nil, nil
	}
	if p.last().size > 0 {
		if err := p.roll(); err != nil {
			return nil, p.refuse(p.dir, err)
		}
	}
	if len(p.segments) == 1 {
		return nil, nil
	}
	// What older tombstones delete was compacted away so long ago that each reader has come to them.
	forget := p.compactions.until(millis(now.Add(-p.topic.deleteRetention())))
	return &compacting{merge: newMerge(p, 0), newest: map[string]int64{}, lasts: p.producers.lasts(), forget: forget}, nil
}

// replace puts the merged file in place of those that it is made of, and
// then calls replaced. See write for the others.
func (m *merge) replace(do func(batch.Batch) error, finish func() error, replaced func()) error {
	if err := m.write(do, finish); err != nil {
		return errors.Join(notWritten(m.path, err), m.of.store.options.FS.RemoveAll(m.path))
	}
	m.of.mu.Lock()
	defer m.of.mu.Unlock()
	return m.of.swap(m, replaced)
}

// each calls do for every batch.
func (m *merge) each(do func(batch.Batch) error) error {
	for _, s := range m.segments {
		in := newScan(s.file)
		for in.at < s.size {
			b, err := in.next()
			if errors.Is(err, errBroken) || errors.Is(err, io.EOF) {
				return damaged(s.path, "batch at byte %d: %v", in.at, err)
			}
			if err == nil {
				err = do(b)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *compacting) readKeys() error {
	return m.each(func(b batch.Batch) error {
		records, err := b.Records()
		for _, r := range records {
			if r.Key != nil {
				m.newest[string(r.Key)] = r.Offset
			}
		}
		return err
	})
}

// write makes the merged file, on disk: of what do writes of each batch,
// and finish in the end.
func (m *merge) write(do func(batch.Batch) error, finish func() error) error {
	file, err := m.of.store.options.FS.Create(m.path)
	if err != nil {
		return err
	}
	m.merged = &segment{base: m.segments[0].base, path: m.segments[0].path, file: file, newest: -1}
	err = m.each(do)
	if err == nil {
		err = finish()
	}
	if err == nil {
		err = m.of.store.syncSegment(m.merged)
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	m.merged.written = m.segments[len(m.segments)-1].written
	return nil
}

// keep writes what is to be kept of a batch.
func (m *compacting) keep(b batch.Batch) error {
	records, err := b.Records()
	if err != nil {
		return err
	}
	var kept []batch.Record
	for _, r := range records {
		if m.isKept(r) {
			kept = append(kept, r)
		}
	}
	switch {
	case len(kept) > 0 && len(kept) == len(records):
	case len(kept) > 0:
		if b, err = batch.Select(b, kept); err != nil {
			return err
		}
	case b.Producer() >= 0 && m.lasts[b.Producer()] == b.End():
		b = batch.Empty(b.Base(), b.End(), b) // its producer may send it again
	default:
		return nil
	}
	if err := m.fill(b.Base()); err != nil {
		return err
	}
	return m.append(b)
}

func (m *compacting) isKept(r batch.Record) bool {
	if r.Key == nil { // nothing can replace it
		return true
	}
	return m.newest[string(r.Key)] == r.Offset && (r.Value != nil || r.Offset >= m.forget)
}

// fill writes empty batches in place of what was dropped, so that the
// log has no gap: a file without them was damaged.
func (m *merge) fill(end int64) error {
	for m.gap < end {
		if err := m.append(batch.Empty(m.gap, min(end, m.gap+batch.Span), nil)); err != nil {
			return err
		}
	}
	return nil
}

func (m *merge) append(b batch.Batch) error {
	n, err := m.merged.file.WriteAt(b, m.merged.size)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return err
	}
	m.merged.note(b, m.merged.written)
	m.gap = b.End()
	return nil
}

const (
	packFrom   = 16 << 10 // bytes of a last segment, at least
	smallBatch = 4 << 10  // bytes of a batch that is packed, at most
	packBytes  = 64 << 10 // of the small batches that become one
	packWindow = 64 << 10 // in which their records repeat each other

	// packSpan is the part of a topic's retention that the records of a
	// packed segment may be apart: the segment expires with its newest.
	packSpan = 8
)

// Pack makes compressed batches of small neighbours in topics that are
// not compacted: each record that came alone repeats what those beside
// it say. Records, offsets and times stay. Records can be appended and
// read meanwhile.
func Pack(s *Store) error {
	codec, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(packWindow), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false))
	if err != nil {
		return err
	}
	for _, t := range s.Topics() {
		if t.Compacted() {
			continue
		}
		for _, p := range t.Partitions() {
			err = errors.Join(err, pack(p, codec))
		}
	}
	return errors.Join(err, codec.Close())
}

// pack merges the last segments into one, if they have small batches.
func pack(p *Partition, codec *zstd.Encoder) error {
	p.rewriting.Lock()
	defer p.rewriting.Unlock()
	m, err := newPacking(p, codec)
	if err != nil || m == nil {
		return err
	}
	return m.replace(m.pack, m.flush, func() {})
}

// A packing is a merge that puts small batches together.
type packing struct {
	merge
	recent  map[int64]int64 // base of the first batch that is remembered of each producer; bounded by producerExpiry
	codec   *zstd.Encoder
	pending []batch.Batch
	bytes   int
}

// newPacking returns nil if there is too little to pack.
func newPacking(p *Partition, codec *zstd.Encoder) (*packing, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.segments) == 0 || p.writable() != nil {
		return nil, nil
	}
	if last := p.last(); last.size < min(packFrom, p.topic.segmentBytes()/2) || last.size/last.batches > smallBatch {
		return nil, nil
	}
	if err := p.roll(); err != nil {
		return nil, p.refuse(p.dir, err)
	}
	first := packedFrom(p.segments, p.topic.limit(settingRetention), p.topic.segmentBytes())
	return &packing{merge: newMerge(p, first), recent: p.producers.recent(), codec: codec}, nil
}

// packedFrom returns the index of the first segment to pack with the one
// before the last: each at most as large as all after it, so that a
// record is rewritten few times.
func packedFrom(segments []*segment, retention, most int64) int {
	first := len(segments) - 2
	newest, size := segments[first].newest, segments[first].size
	for first > 0 {
		before := segments[first-1]
		far := retention >= 0 && newest-before.newest > retention/packSpan
		if far || before.size > size || before.size+size > most {
			break
		}
		size += before.size
		first--
	}
	return first
}

// pack takes the next batch.
func (m *packing) pack(b batch.Batch) error {
	recent, known := m.recent[b.Producer()]
	if len(b) > smallBatch || b.Count() == 0 || known && b.Base() >= recent { // its producer may send it again
		return errors.Join(m.flush(), m.append(b))
	}
	m.pending, m.bytes = append(m.pending, bytes.Clone(b)), m.bytes+len(b)
	if m.bytes < packBytes {
		return nil
	}
	return m.flush()
}

// flush writes the pending batches as one.
func (m *packing) flush() error {
	if len(m.pending) == 0 {
		return nil
	}
	merged, err := batch.Merge(m.pending, m.codec)
	m.pending, m.bytes = nil, 0
	if err != nil {
		return err
	}
	return m.append(merged)
}
