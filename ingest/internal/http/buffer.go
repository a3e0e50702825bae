package http

import (
	"os"
	"sync"

	"github.com/weirlog/weir/ingest"
)

// smallBody is the largest small body: it lives on the garbage-collected heap,
// and has a reserve that larger ones can't take.
const smallBody = 1 << 20

// regionStep is the step by which a large body's memory grows.
const regionStep = 1 << 20

// bufferSizes are those of small buffers, with a byte more, so that a body of
// just that size differs from a larger one without a larger buffer.
var bufferSizes = [...]int{8 << 10, 64 << 10, 256 << 10, smallBody}

// A Buffer is memory for a body, with room for the parser's
// padding behind the text.
type Buffer struct {
	Bytes []byte
	kind  int     // of a small one: index of its size
	large *region // of a large one
}

// kindFor returns the smallest kind that holds size bytes, or the largest.
func kindFor(size int) int {
	for kind, holds := range bufferSizes {
		if size <= holds {
			return kind
		}
	}
	return len(bufferSizes) - 1
}

// size returns the buffer's memory.
func (b *Buffer) size() int64 {
	if b.large != nil {
		return int64(b.large.usable)
	}
	return int64(bufferSizes[b.kind])
}

// room returns the free part of the buffer.
func (b *Buffer) room() []byte {
	end := cap(b.Bytes)
	if b.large != nil {
		end = b.large.usable
	}
	return b.Bytes[len(b.Bytes) : end-ingest.Padding]
}

// buffers keeps small buffers for reuse, until the garbage collector comes.
type buffers struct {
	idle [len(bufferSizes)]sync.Pool
}

// lend returns an empty small buffer.
func (b *buffers) lend(kind int) *Buffer {
	if buffer, ok := b.idle[kind].Get().(*Buffer); ok {
		return buffer
	}
	return &Buffer{Bytes: make([]byte, 0, bufferSizes[kind]+1+ingest.Padding), kind: kind}
}

// giveBack returns an unused buffer.
func (b *buffers) giveBack(buffer *Buffer) {
	if buffer.large != nil {
		buffer.large.release()
		buffer.Bytes = nil
		return
	}
	buffer.Bytes = buffer.Bytes[:0]
	b.idle[buffer.kind].Put(buffer)
}

// newLarge returns a buffer that can grow to hold limit bytes
// and one more. Its first step is usable.
func newLarge(limit int) (*Buffer, error) {
	page := os.Getpagesize()
	size := (limit + 1 + ingest.Padding + page - 1) / page * page
	large, err := reserve(max(size, firstStep))
	if err != nil {
		return nil, err
	}
	if err := large.use(firstStep); err != nil {
		large.release()
		return nil, err
	}
	return &Buffer{Bytes: large.addresses[:0], large: large}, nil
}

// firstStep is how much of a large body is usable at first: more than a
// small one holds.
const firstStep = 2 * regionStep

// grow makes another step of a large buffer usable.
func (b *Buffer) grow() error {
	return b.large.use(min(b.large.usable+regionStep, len(b.large.addresses)))
}

// growth returns how much memory grow takes.
func (b *Buffer) growth() int64 {
	return int64(min(regionStep, len(b.large.addresses)-b.large.usable))
}
