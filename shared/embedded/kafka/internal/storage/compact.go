package storage

import (
	"errors"
	"io"
	"strings"
	"time"

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
			err = errors.Join(err, p.compact(now))
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
func (p *Partition) compact(now time.Time) error {
	p.rewriting.Lock()
	defer p.rewriting.Unlock()
	c, err := p.beginCompaction(now)
	if err != nil || c == nil {
		return err
	}
	if err := c.readKeys(); err != nil {
		return err
	}
	if err := c.write(); err != nil {
		return errors.Join(notWritten(c.path, err), p.store.options.FS.RemoveAll(c.path))
	}
	return p.replace(c, now)
}

// A merge is a compaction of some segments.
type merge struct {
	store    *Store
	segments []*segment
	end      int64 // of the last of them
	path     string

	newest map[string]int64 // offset of each key's last record, bounded by the topic's keys
	lasts  map[int64]int64  // end of each producer's last batch, bounded by producerExpiry
	forget int64            // tombstones before this offset go
	merged *segment
	gap    int64 // first offset not written yet

}

// beginCompaction returns nil if there is nothing to compact.
func (p *Partition) beginCompaction(now time.Time) (*merge, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.segments) == 0 || p.writable() != nil {
		return nil, nil
	}
	if p.segments[len(p.segments)-1].size > 0 {
		if err := p.roll(); err != nil {
			return nil, p.refuse(err)
		}
	}
	n := len(p.segments) - 1
	if n == 0 {
		return nil, nil
	}
	first := p.segments[0]
	return &merge{
		store: p.store, segments: p.segments[:n:n], end: p.segments[n].base, path: strings.TrimSuffix(first.path, segmentSuffix) + ".new",
		newest: map[string]int64{}, lasts: p.producers.lasts(), forget: p.forgotten(now), gap: first.base,
	}, nil
}

// forgotten returns the offset before which tombstones are not needed:
// what they delete was compacted away so long ago that each reader has
// come to them.
func (p *Partition) forgotten(now time.Time) (offset int64) {
	old := millis(now.Add(-p.topic.deleteRetention()))
	for len(p.compactions) > 0 && p.compactions[0].At <= old {
		offset = p.compactions[0].Before
		if len(p.compactions) > 1 && p.compactions[1].At > old {
			break // keep the last that is old enough
		}
		if len(p.compactions) == 1 {
			break
		}
		p.compactions = p.compactions[1:]
	}
	return offset
}

// each calls do for every batch.
func (m *merge) each(do func(batch.Batch) error) error {
	for _, s := range m.segments {
		in := newScan(s.file)
		for in.at < s.size {
			b, err := in.next()
			if errors.Is(err, errBroken) || errors.Is(err, errUnfinished) || errors.Is(err, io.EOF) {
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

func (m *merge) readKeys() error {
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

// write makes the merged file, on disk.
func (m *merge) write() error {
	file, err := m.store.options.FS.Create(m.path)
	if err != nil {
		return err
	}
	m.merged = &segment{base: m.segments[0].base, path: m.segments[0].path, file: file, newest: -1}
	err = m.each(m.keep)
	if err == nil {
		err = m.fill(m.end)
	}
	if err == nil {
		err = m.store.syncSegment(m.merged)
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	m.merged.written = m.segments[len(m.segments)-1].written
	return nil
}

// keep writes what is to be kept of a batch.
func (m *merge) keep(b batch.Batch) error {
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

func (m *merge) isKept(r batch.Record) bool {
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

// maxCompactions is how many are known: enough for tombstones to go in time.
const maxCompactions = 100

// replace puts the merged file in place of those that it was made of.
func (p *Partition) replace(m *merge, now time.Time) error {
	fsys := p.store.options.FS
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := fsys.Rename(m.path, m.merged.path); err != nil {
		return errors.Join(notWritten(m.merged.path, err), m.merged.file.Close(), fsys.RemoveAll(m.path))
	}
	old := m.segments
	p.segments = append([]*segment{m.merged}, p.segments[len(old):]...)
	p.compactions = append(p.compactions[:min(len(p.compactions), maxCompactions-1)], compaction{m.end, millis(now)})
	if err := p.store.syncDir(p.dir); err != nil { // or those removed could be missed
		err = notWritten(p.dir, err)
		for _, s := range old {
			err = errors.Join(err, s.file.Close())
		}
		return err
	}
	err := old[0].file.Close()
	for _, s := range old[1:] {
		err = errors.Join(err, p.remove(s))
	}
	return err
}
