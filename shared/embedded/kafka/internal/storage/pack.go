package storage

import (
	"bytes"
	"errors"

	"github.com/klauspost/compress/zstd"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/batch"
)

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
			err = errors.Join(err, p.pack(codec))
		}
	}
	return errors.Join(err, codec.Close())
}

// pack merges the last segments into one, if they have small batches.
func (p *Partition) pack(codec *zstd.Encoder) error {
	p.rewriting.Lock()
	defer p.rewriting.Unlock()
	m, err := p.beginPacking()
	if err != nil || m == nil {
		return err
	}
	m.codec = codec
	if err := m.write(m.pack, m.flush); err != nil {
		return errors.Join(notWritten(m.path, err), p.store.options.FS.RemoveAll(m.path))
	}
	return p.replace(&m.merge, func() {})
}

// A packing is a merge that puts small batches together.
type packing struct {
	merge
	recent  map[int64]int64 // base of the first batch that is remembered of each producer; bounded by producerExpiry
	codec   *zstd.Encoder
	pending []batch.Batch
	bytes   int
}

// beginPacking returns nil if there is too little to pack.
func (p *Partition) beginPacking() (*packing, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.segments) == 0 || p.writable() != nil {
		return nil, nil
	}
	if last := p.segments[len(p.segments)-1]; last.size < min(packFrom, p.topic.segmentBytes()/2) || last.size/last.batches > smallBatch {
		return nil, nil
	}
	if err := p.roll(); err != nil {
		return nil, p.refuse(err)
	}
	return &packing{merge: p.mergeOf(p.packedFrom()), recent: p.producers.recent()}, nil
}

// packedFrom returns the index of the first segment to pack with the one
// before the last: each at most as large as all after it, so that a
// record is rewritten few times.
func (p *Partition) packedFrom() int {
	first := len(p.segments) - 2
	newest, size := p.segments[first].newest, p.segments[first].size
	retention := p.topic.limit(settingRetention)
	for first > 0 {
		before := p.segments[first-1]
		far := retention >= 0 && newest-before.newest > retention/packSpan
		if far || before.size > size || before.size+size > p.topic.segmentBytes() {
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
