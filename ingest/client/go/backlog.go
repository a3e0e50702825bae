package weir

import (
	"context"
	"math"
	"slices"
	"sync"
)

// A backlog has the batches that are not settled, oldest first: in memory a
// single one, so that the next is as large as it can be and the queue decides
// what is dropped; with a spool as many as that may hold.
type backlog struct {
	mu      sync.Mutex
	batches []*batch
	bytes   int64
	changed chan struct{} // closed at each change
	spool   *spool        // nil: in memory
	most    int64         // bytes of the spool
}

func newBacklog(s *spool, most int64) (*backlog, error) {
	b := &backlog{changed: make(chan struct{}), spool: s, most: most}
	if s == nil {
		return b, nil
	}
	var err error
	b.batches, err = s.batches()
	for _, left := range b.batches {
		b.bytes += left.size
	}
	return b, err
}

func (b *backlog) change() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// notify wakes those that wait for something that is not in the backlog.
func (b *backlog) notify() {
	b.mu.Lock()
	b.change()
	b.mu.Unlock()
}

// await returns once is holds.
func (b *backlog) await(ctx context.Context, is func() bool) error {
	for {
		b.mu.Lock()
		holds, changed := is(), b.changed
		b.mu.Unlock()
		if holds {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// room waits until another batch may be put.
func (b *backlog) room(ctx context.Context) error { return b.await(ctx, b.fits) }

// fits needs the lock, unless nobody else has the backlog. While a batch could
// not be written to disk there is no room, so that memory is bounded.
func (b *backlog) fits() bool {
	last := len(b.batches) - 1
	return last < 0 || b.spool != nil && b.bytes < b.most && b.batches[last].file != ""
}

// put adds a batch. If it cannot be written to disk it stays in memory.
func (b *backlog) put(put *batch) (err error) {
	if b.spool != nil {
		err = b.spool.write(put)
	}
	b.mu.Lock()
	b.batches = append(b.batches, put)
	b.bytes += put.size
	b.change()
	b.mu.Unlock()
	return err
}

// next waits for the oldest batch.
func (b *backlog) next(ctx context.Context) (next *batch, err error) {
	err = b.await(ctx, func() bool {
		if len(b.batches) > 0 {
			next = b.batches[0]
		}
		return next != nil
	})
	return next, err
}

// settle removes the oldest batch.
func (b *backlog) settle(settled *batch) {
	if settled.file != "" {
		b.spool.remove(settled)
	}
	b.mu.Lock()
	b.batches = b.batches[1:]
	b.bytes -= settled.size
	b.change()
	b.mu.Unlock()
}

// leave makes a batch one that nobody waits for.
func (b *backlog) leave(left *batch) {
	b.mu.Lock()
	left.first = math.MaxUint64
	b.change()
	b.mu.Unlock()
}

// outstanding returns the lowest number in the backlog. It needs the lock.
func (b *backlog) outstanding() uint64 {
	lowest := uint64(math.MaxUint64)
	for _, one := range b.batches {
		lowest = min(lowest, one.first)
	}
	return lowest
}

// repaired notes that a batch has fewer entries.
func (b *backlog) repaired(batch *batch, entries int) {
	b.mu.Lock()
	batch.entries = entries
	b.mu.Unlock()
}

// dropUnsaved removes batches that are only in memory, and counts their
// entries.
func (b *backlog) dropUnsaved() (entries int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.batches = slices.DeleteFunc(b.batches, func(one *batch) bool {
		if one.file == "" {
			entries += one.entries
		}
		return one.file == ""
	})
	return entries
}

func (b *backlog) waiting() (entries int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, one := range b.batches {
		entries += one.entries
	}
	return entries
}
