package http

import (
	"errors"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/weirlog/weir/ingest"
)

// Sizes of buffers: a byte more than powers of two, so that few kinds are kept and a body of exactly the limit, itself
// a power of two, is told from a larger one without a buffer of twice its size.
const (
	minBufferBits = 16 // 64 KB
	maxBufferBits = 40
)

// errOverloaded says that as many bytes are in flight as the process allows.
var errOverloaded = errors.New("too many bytes are in flight")

// Buffers lends memory for bodies and limits how much of it is lent at once.
type Buffers struct {
	limit int64
	lent  atomic.Int64
	pools [maxBufferBits]sync.Pool
}

// NewBuffers lends at most limit bytes at once.
func NewBuffers(limit int64) *Buffers { return &Buffers{limit: limit} }

// Lent is how many bytes are lent now.
func (b *Buffers) Lent() int64 { return b.lent.Load() }

// A Buffer is lent memory. Bytes has room for the parser's padding behind its capacity for text.
type Buffer struct {
	Bytes []byte
	kind  int // log2 of its size
}

func kindOf(size int) int {
	return max(minBufferBits, bits.Len(uint(max(size-2, 0))))
}

// Lend lends a buffer for size bytes.
func (b *Buffers) Lend(size int) (*Buffer, error) {
	kind := kindOf(size)
	if b.lent.Add(1<<kind) > b.limit {
		b.lent.Add(-1 << kind)
		return nil, errOverloaded
	}
	if pooled, ok := b.pools[kind].Get().(*Buffer); ok {
		return pooled, nil
	}
	return &Buffer{Bytes: make([]byte, 0, 1<<kind+1+ingest.Padding), kind: kind}, nil
}

// Return takes a buffer back.
func (b *Buffers) Return(buffer *Buffer) {
	b.lent.Add(-1 << buffer.kind)
	buffer.Bytes = buffer.Bytes[:0]
	b.pools[buffer.kind].Put(buffer)
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
