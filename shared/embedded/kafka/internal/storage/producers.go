package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"sync"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/batch"
	"github.com/weirlog/weir/shared/embedded/kafka/internal/disk"
)

// rememberedBatches is how many of a producer's last batches are known,
// as in Apache Kafka: no more may be in flight.
const rememberedBatches = 5

// producerExpiry is how long a silent producer is known, in
// milliseconds: Apache Kafka's producer.id.expiration.ms.
const producerExpiry = 24 * 60 * 60 * 1000

// A producer is what a partition knows of one.
type producer struct {
	epoch  int16
	recent []sent // oldest first
	newest int64  // when its last batch was appended, in milliseconds
}

type sent struct {
	first, last int32 // sequence numbers
	base, end   int64 // offsets
}

type producers map[int64]*producer

// admit returns what was written before if a batch is a repetition, or
// why it can't be appended to a log that ends at end.
func (p producers) admit(b batch.Batch, end int64) (again *sent, err error) {
	if b.Producer() < 0 {
		return nil, nil
	}
	first, last := b.Sequences()
	known := p[b.Producer()]
	switch {
	case known == nil && first == 0:
		return nil, nil
	case known == nil && end == 0: // an earlier batch is still to come
		return nil, ErrOutOfOrder
	case known == nil:
		return nil, ErrUnknownProducer
	case b.Epoch() < known.epoch:
		return nil, ErrFenced
	case b.Epoch() > known.epoch && first == 0:
		return nil, nil
	case b.Epoch() > known.epoch:
		return nil, ErrOutOfOrder
	}
	for _, s := range known.recent {
		if s.first == first && s.last == last {
			return &s, nil
		}
	}
	if newest := known.recent[len(known.recent)-1]; first != int32((int64(newest.last)+1)&0x7fffffff) { //nolint:gosec // 31 bits
		return nil, ErrOutOfOrder
	}
	return nil, nil
}

// note remembers a batch that the log has since a time, in milliseconds.
func (p producers) note(b batch.Batch, at int64) {
	if b.Producer() < 0 {
		return
	}
	known := p[b.Producer()]
	if known == nil || known.epoch != b.Epoch() {
		known = &producer{epoch: b.Epoch()}
		p[b.Producer()] = known
	}
	first, last := b.Sequences()
	known.recent = append(known.recent, sent{first, last, b.Base(), b.End()})
	if len(known.recent) > rememberedBatches {
		known.recent = known.recent[1:]
	}
	known.newest = max(known.newest, at)
}

// forget drops those that have been silent for long, now in milliseconds.
func (p producers) forget(now int64) {
	maps.DeleteFunc(p, func(_ int64, known *producer) bool { return known.newest < now-producerExpiry })
}

// lasts returns the end of each producer's last batch.
func (p producers) lasts() map[int64]int64 {
	ends := make(map[int64]int64, len(p))
	for id, known := range p {
		ends[id] = known.recent[len(known.recent)-1].end
	}
	return ends
}

// recent returns where the first batch lies that is remembered of each.
func (p producers) recent() map[int64]int64 {
	bases := make(map[int64]int64, len(p))
	for id, known := range p {
		bases[id] = known.recent[0].base
	}
	return bases
}

// idsFile holds the producer id from which on none is given.
const idsFile = "producers"

// idsAtOnce is how many ids are taken with one write: enough for clients
// that need new ones while the disk is full.
const idsAtOnce = 1 << 20

// An idBlock is the ids that are taken and not given yet.
type idBlock struct {
	mu        sync.Mutex
	next, end int64
}

// ProducerID returns an id that no producer had before.
func (s *Store) ProducerID() (int64, error) { return s.ids.take(s.options) }

func (b *idBlock) take(o Options) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == b.end {
		end := b.end + idsAtOnce
		if err := disk.Replace(o.FS, o.Dir, idsFile, fmt.Append(nil, end)); err != nil {
			return 0, notWritten(o.path(idsFile), err)
		}
		b.end = end
	}
	b.next++
	return b.next - 1, nil
}

func (b *idBlock) read(o Options) error {
	raw, err := disk.Read(o.FS, o.path(idsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // of those given, the logs know
	}
	if err != nil {
		return err
	}
	if _, err := fmt.Sscan(string(raw), &b.end); err != nil || b.end < 0 {
		return damaged(o.path(idsFile), "%q is no producer id", raw)
	}
	b.next = b.end
	return nil
}

// skip gives no id that a log knows, also if the file with those given
// was lost.
func (b *idBlock) skip(known producers) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id := range known {
		if id >= b.end {
			b.next, b.end = id+1, id+1
		}
	}
}
