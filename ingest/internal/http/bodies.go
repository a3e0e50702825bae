package http

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/admission"
	"github.com/weirlog/weir/shared/fairshare"
)

// BodyLimits bound the bodies that are in memory at once, decompression included.
type BodyLimits struct {
	Bytes int64 // of memory, for all
	Max   int   // of one body after decompression

	Requests    int // under way at once for one holder
	LargeBodies int // of more than 1 MiB, at once for one holder

	Throttle admission.ThrottleLimit // of these, for one holder while others send bodies, too
}

// Shares of the memory. Small bodies have a reserve; of it one holder has a part.
const (
	reserveShare = 4 // a quarter is for small bodies
	holderShare  = 2 // half of that at most for one holder
)

// How long a body waits for memory before it is refused, and how
// long a large one can't be ended for others. A small one, which is
// read at once unless it stalls, never can.
const (
	smallWait  = 5 * time.Second
	largeWait  = 15 * time.Second
	largeGrace = 10 * time.Second
)

// Bodies reads bodies whole and decompressed, into lent memory. Memory is
// counted by holder: an organization or a client network.
type Bodies struct {
	max   int
	clock func() time.Time

	small, large *fairshare.Limiter // of bytes
	most         [2]int64           // that one small and one large body may ever take
	throttle     *admission.Throttle

	buffers       buffers
	decompressors decompressors
	refused       refusals
}

// refusals count refused bodies by reason.
type refusals struct {
	full, tooMany, overShare, taken, slow atomic.Int64
}

func (b *Bodies) count(err error) {
	switch {
	case errors.Is(err, fairshare.ErrEvicted):
		b.refused.taken.Add(1)
	case errors.Is(err, fairshare.ErrTooMany):
		b.refused.tooMany.Add(1)
	case errors.Is(err, admission.ErrOverShare):
		b.refused.overShare.Add(1)
	case errors.Is(err, fairshare.ErrFull):
		b.refused.full.Add(1)
	case errors.Is(err, errTooSlow), errors.Is(err, os.ErrDeadlineExceeded):
		b.refused.slow.Add(1)
	}
}

// NewBodies returns Bodies. The limits must be positive and large
// enough for one body: see LargestBody.
func NewBodies(limits BodyLimits, clock func() time.Time) *Bodies {
	reserve := limits.Bytes / reserveShare
	return &Bodies{
		max: limits.Max, clock: clock, most: [2]int64{reserve / holderShare, limits.Bytes - reserve},
		small: fairshare.NewLimiter(fairshare.Limits{
			Capacity: reserve, PerKey: reserve / holderShare, Leases: limits.Requests, Wait: smallWait, Clock: clock,
		}),
		large: fairshare.NewLimiter(fairshare.Limits{
			Capacity: limits.Bytes - reserve, Leases: limits.LargeBodies, Wait: largeWait, Grace: largeGrace, Clock: clock,
		}),
		throttle: admission.NewThrottle(limits.Throttle, clock),
	}
}

// LargestBody returns the largest body, however compressed, for which
// so much memory suffices.
func LargestBody(bytes int64) int64 {
	large := bytes - bytes/reserveShare
	if fits := large - zstdStreamMemory - regionStep; fits > smallBody {
		return fits
	}
	return smallBody
}

// A BodyUse is what bodies hold now, and how many were refused.
type BodyUse struct {
	SmallBytes, LargeBytes int64 // lent
	UnderWay               int64 // bodies that hold memory or wait for it
	Waiting                int64 // bodies that wait for memory
	Throttled              int64 // bodies that wait for their holder's share
	WaitedForShare         time.Duration

	Full      int64 // bodies for which there was no memory in time
	TooMany   int64 // bodies of holders that had too many under way
	OverShare int64 // bodies of holders that sent faster than their share
	Taken     int64 // bodies that were ended because others needed their memory
	Slow      int64 // bodies that were ended because they came too slowly
}

// Use returns what bodies hold now.
func (b *Bodies) Use() BodyUse {
	return BodyUse{
		SmallBytes: b.small.Held(), LargeBytes: b.large.Held(),
		UnderWay: int64(b.small.Leases() + b.large.Leases()), Waiting: int64(b.small.Queued() + b.large.Queued()),
		Throttled: b.throttle.Waiting(), WaitedForShare: b.throttle.Waited(),
		Full: b.refused.full.Load(), TooMany: b.refused.tooMany.Load(), OverShare: b.refused.overShare.Load(),
		Taken: b.refused.taken.Load(), Slow: b.refused.slow.Load(),
	}
}

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
