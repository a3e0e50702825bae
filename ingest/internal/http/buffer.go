package http

import (
	"errors"
	"math/bits"
	"sync"

	"github.com/weirlog/weir/ingest"
)

// Sizes of buffers: a byte more than powers of two, so that few kinds are kept and a body of exactly the limit, itself
// a power of two, is told from a larger one without a buffer of twice its size.
const (
	minBufferBits = 16 // 64 KB
	maxBufferBits = 40
)

// keptBits is the largest kind that Trim leaves: buffers up to 1 MB serve what clients usually send.
const keptBits = 20

// errOverloaded says that as many bytes are in flight as the process allows.
var errOverloaded = errors.New("too many bytes are in flight")

// Buffers lends memory for bodies and limits how much of it is lent at once. What came back is lent again rather than
// left to the garbage collector, which would let the process grow to a multiple of the limit before it looks. At most
// the limit lies idle.
type Buffers struct {
	limit int64

	mu     sync.Mutex
	lent   int64
	unused int64
	idle   [maxBufferBits][]*Buffer
}

// NewBuffers lends at most limit bytes at once.
func NewBuffers(limit int64) *Buffers { return &Buffers{limit: limit} }

// Lent is how many bytes are lent now.
func (b *Buffers) Lent() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lent
}

// A Buffer is lent memory. Bytes has room for the parser's padding behind its capacity for text.
type Buffer struct {
	Bytes []byte
	kind  int // log2 of its size
}

func kindOf(size int) int {
	return max(minBufferBits, bits.Len(uint(max(size-2, 0)))) //nolint:gosec // never negative
}

// Lend lends a buffer for size bytes.
func (b *Buffers) Lend(size int) (*Buffer, error) {
	kind := kindOf(size)
	buffer, err := b.lend(kind)
	if err != nil {
		return nil, err
	}
	if buffer == nil {
		buffer = &Buffer{Bytes: make([]byte, 0, 1<<kind+1+ingest.Padding), kind: kind}
	}
	return buffer, nil
}

// lend counts a buffer as lent and returns an idle one, or nil for one to be made.
func (b *Buffers) lend(kind int) (*Buffer, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lent+(1<<kind) > b.limit {
		return nil, errOverloaded
	}
	b.lent += 1 << kind
	return b.pop(kind), nil
}

// pop takes an idle buffer of a kind, or returns nil.
func (b *Buffers) pop(kind int) *Buffer {
	idle := b.idle[kind]
	if len(idle) == 0 {
		return nil
	}
	last := len(idle) - 1
	buffer := idle[last]
	idle[last] = nil
	b.idle[kind] = idle[:last]
	b.unused -= 1 << kind
	return buffer
}

// Return takes a buffer back. To keep it, smaller ones are let go first: they are cheaper to make again.
func (b *Buffers) Return(buffer *Buffer) {
	buffer.Bytes = buffer.Bytes[:0]
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lent -= 1 << buffer.kind
	b.unused += 1 << buffer.kind
	b.idle[buffer.kind] = append(b.idle[buffer.kind], buffer)
	for kind := minBufferBits; b.unused > b.limit; kind++ {
		for b.unused > b.limit && b.pop(kind) != nil { //nolint:revive // the loop is its condition
		}
	}
}

// Trim lets go of the idle buffers that only large bodies need.
func (b *Buffers) Trim() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for kind := keptBits + 1; kind < maxBufferBits; kind++ {
		for b.pop(kind) != nil { //nolint:revive // the loop is its condition
		}
	}
}

// Grow changes a full buffer for one of at least size bytes with the same text. On failure the old one stays lent.
func (b *Buffers) Grow(old *Buffer, size int) (*Buffer, error) {
	larger, err := b.Lend(size)
	if err != nil {
		return old, err
	}
	larger.Bytes = append(larger.Bytes, old.Bytes...)
	b.Return(old)
	return larger, nil
}

// room is the part of the buffer that is free for text.
func (b *Buffer) room() []byte {
	return b.Bytes[len(b.Bytes) : cap(b.Bytes)-ingest.Padding]
}
