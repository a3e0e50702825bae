package publisher

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/batch"
)

// partition holds the publisher's batches for one partition in order,
// with at most one in flight. That keeps sequence numbers simple at no
// cost: messages that arrive meanwhile share the next batch.
type partition struct {
	topic  string
	index  int
	leader atomic.Int32 // -1: none

	mu       sync.Mutex
	busy     bool           // at a worker, or waiting in a link, for its backoff or for a leader
	head     *batch.Batch   // sealed under a sequence; stays until its outcome is final
	queue    []*batch.Batch // not sealed; records go into the last one
	failures int            // attempts of head in a row without a final answer

	refusedSince time.Time // by the leader's disk; zero: it takes batches

	producer batch.Identity
	next     int32 // sequence of the next batch
}

// add appends a record and reports whether the partition was idle, and
// so must be scheduled.
func (p *partition) add(r batch.Outgoing, now int64, deadline time.Time, limit int) (b *batch.Batch, index int, idle bool) {
	size := r.Bound()
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.queue); n > 0 && p.queue[n-1].Takes(size, limit) {
		b = p.queue[n-1]
	} else {
		b = batch.New(deadline, size)
		p.queue = append(p.queue, b)
	}
	index = b.Add(r, now)
	b.Reserved += size
	idle = !p.busy
	p.busy = true
	return b, index, idle
}

// nextBytes returns the size of the next batch to send, 0 for none.
func (p *partition) nextBytes() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.head != nil:
		return p.head.Size()
	case len(p.queue) > 0:
		return p.queue[0].Size()
	default:
		return 0
	}
}

// take makes the next batch the head and returns it; nil: none. A fresh
// one is sealed with who and the sequence, without the lock: nothing
// else uses the head of a busy partition.
func (p *partition) take(who batch.Identity) (b *batch.Batch, sequence int32, fresh bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.head != nil || len(p.queue) == 0 {
		return p.head, 0, false
	}
	p.head = p.queue[0]
	p.queue[0] = nil
	p.queue = p.queue[1:]
	if p.producer != who {
		p.producer, p.next = who, 0
	}
	sequence = p.next
	p.next = addSequence(p.next, p.head.Count)
	return p.head, sequence, true
}

// finish ends the turn of a settled batch and reports whether it was
// the head. One removed before has no turn.
func (p *partition) finish(b *batch.Batch) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.head != b {
		return false
	}
	p.head, p.failures = nil, 0
	return true
}

// rewind gives the sequence of the head, which was surely not written,
// to the next batch.
func (p *partition) rewind(b *batch.Batch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = b.Sequence
}

// unseal puts the head, which was surely not written, back into the
// queue for another producer.
func (p *partition) unseal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = append([]*batch.Batch{p.head}, p.queue...)
	p.head = nil
}

// takeExpired removes the batches whose time is over. Later batches
// have more time.
func (p *partition) takeExpired(now time.Time) []*batch.Batch {
	p.mu.Lock()
	defer p.mu.Unlock()
	var expired []*batch.Batch
	if p.head != nil {
		if now.Before(p.head.Deadline) {
			return nil
		}
		expired, p.head = append(expired, p.head), nil
	}
	for len(p.queue) > 0 && !now.Before(p.queue[0].Deadline) {
		expired = append(expired, p.queue[0])
		p.queue = p.queue[1:]
	}
	return expired
}

// rest ends the partition's turn. It reports whether there is more to
// send; then the partition stays busy.
func (p *partition) rest() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy = p.head != nil || len(p.queue) > 0
	return p.busy
}

// failed counts an attempt without a final answer and returns how
// many there were.
func (p *partition) failed() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failures++
	return p.failures
}

// refusedFor returns for how long the leader's disk has refused batches.
func (p *partition) refusedFor(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refusedSince.IsZero() {
		p.refusedSince = now
	}
	return now.Sub(p.refusedSince)
}

// accepted notes that the leader's disk takes batches.
func (p *partition) accepted() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusedSince = time.Time{}
}

// takeAll empties the partition.
func (p *partition) takeAll() []*batch.Batch {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.queue
	if p.head != nil {
		all = append([]*batch.Batch{p.head}, all...)
	}
	p.head, p.queue = nil, nil
	return all
}

// addSequence adds as brokers do: after the largest int32 comes 0.
func addSequence(sequence int32, n int) int32 {
	return int32((int64(sequence) + int64(n)) % (math.MaxInt32 + 1))
}

func (t *topic) list() []*partition {
	if list := t.partitions.Load(); list != nil {
		return *list
	}
	return nil
}

// partitionOf returns a key's partition by Java's default partitioner,
// so that all producers of a topic agree. n >= 1.
func partitionOf(key string, n int) int {
	return int(murmur2(key)&0x7fffffff) % n
}

// murmur2 is MurmurHash2 by Austin Appleby in the variant of
// org.apache.kafka.common.utils.Utils.murmur2.
func murmur2(data string) uint32 {
	const (
		seed = 0x9747b28c
		m    = 0x5bd1e995
		r    = 24
	)
	h := uint32(seed) ^ uint32(len(data))
	for ; len(data) >= 4; data = data[4:] {
		k := uint32(data[0]) | uint32(data[1])<<8 | uint32(data[2])<<16 | uint32(data[3])<<24
		k *= m
		k ^= k >> r
		k *= m
		h = h*m ^ k
	}
	switch len(data) {
	case 3:
		h ^= uint32(data[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(data[1]) << 8
		fallthrough
	case 1:
		h = (h ^ uint32(data[0])) * m
	}
	h = (h ^ h>>13) * m
	return h ^ h>>15
}

// budget bounds the bytes in use, first come, first served, so that a
// large request does not starve.
type budget struct {
	mu      sync.Mutex
	limit   int
	used    int
	waiting []*claim
	closed  bool
}

type claim struct {
	size    int
	granted chan bool // one value: true granted, false closed
}

// take waits until n bytes fit. More than the whole budget fits if
// nothing else is in use.
func (b *budget) take(ctx context.Context, n int) error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return bus.ErrClosed
	}
	if len(b.waiting) == 0 && b.fits(n) {
		b.used += n
		b.mu.Unlock()
		return nil
	}
	mine := &claim{n, make(chan bool, 1)}
	b.waiting = append(b.waiting, mine)
	b.mu.Unlock()
	select {
	case ok := <-mine.granted:
		return grantedOr(ok)
	case <-ctx.Done():
		return b.withdraw(mine, ctx.Err())
	}
}

func grantedOr(ok bool) error {
	if !ok {
		return bus.ErrClosed
	}
	return nil
}

// withdraw withdraws a claim that may have just been granted.
func (b *budget) withdraw(mine *claim, err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, c := range b.waiting {
		if c == mine {
			b.waiting = append(b.waiting[:i], b.waiting[i+1:]...)
			b.grant()
			return err
		}
	}
	if <-mine.granted {
		b.used -= mine.size
		b.grant()
	}
	return err
}

func (b *budget) fits(n int) bool { return b.used == 0 || b.used+n <= b.limit }

// give returns n bytes.
func (b *budget) give(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	b.grant()
}

func (b *budget) grant() {
	for len(b.waiting) > 0 && b.fits(b.waiting[0].size) {
		next := b.waiting[0]
		b.waiting = b.waiting[1:]
		b.used += next.size
		next.granted <- true
	}
}

// close refuses all present and later claims.
func (b *budget) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for _, c := range b.waiting {
		c.granted <- false
	}
	b.waiting = nil
}
