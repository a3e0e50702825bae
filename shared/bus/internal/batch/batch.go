package batch

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/wire"
	"github.com/weirlog/weir/shared/compression"
)

// Layout of a record batch, version 2
// (https://kafka.apache.org/documentation/#recordbatch), after the
// four bytes of size of a Produce request.
const (
	atLength     = 4 + 8
	atEpoch      = 4 + 12
	atMagic      = 4 + 16
	atChecksum   = 4 + 17
	atAttributes = 4 + 21
	atLastDelta  = 4 + 23
	atFirstTime  = 4 + 27
	atMaxTime    = 4 + 35
	atProducer   = 4 + 43
	atSequence   = 4 + 53
	atCount      = 4 + 57
	batchHeader  = 4 + 61

	attributeZstd = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Batch is a record batch that grows until it is sealed; then its bytes
// are final, also for retries.
type Batch struct {
	Buffer    []byte
	Count     int
	firstTime int64 // milliseconds
	MaxTime   int64
	Reserved  int // bytes of the publisher's budget
	Deadline  time.Time

	Producer Identity
	Sequence int32
	Sealed   bool // no record may be added
	packed   bool // the records are compressed
	Doubtful bool // an unconfirmed attempt may have been written

	Done       chan struct{} // closed when offset and err are final
	baseOffset int64
	Err        error
}

// Identity is an idempotent producer's id and epoch.
type Identity struct {
	ID    int64
	Epoch int16
}

func New(deadline time.Time, room int) *Batch {
	b := &Batch{Buffer: TakeBuffer(batchHeader + room)[:batchHeader], Deadline: deadline, Done: make(chan struct{}), baseOffset: -1}
	clear(b.Buffer)
	return b
}

// Add appends one record and returns its index in the batch.
func (b *Batch) Add(out Outgoing, now int64) int {
	if b.Count == 0 {
		b.firstTime, b.MaxTime = now, now
	}
	b.MaxTime = max(b.MaxTime, now)
	b.Buffer = growBuffer(b.Buffer, out.Bound())
	b.Buffer = appendRecord(b.Buffer, out, now-b.firstTime, b.Count)
	b.Count++
	return b.Count - 1
}

// Takes reports whether a record of at most n bytes fits.
func (b *Batch) Takes(n, limit int) bool { return !b.Sealed && len(b.Buffer)+n <= limit }

// Size returns the current number of bytes.
func (b *Batch) Size() int { return len(b.Buffer) }

// Seal makes the batch final with a producer's identity and sequence. codec
// compresses the records; nil: none. A sealed batch gets only the new identity.
func (b *Batch) Seal(who Identity, sequence int32, codec *compression.Packer) {
	b.Producer, b.Sequence, b.Sealed = who, sequence, true
	if codec != nil && !b.packed {
		b.compress(codec)
	}
	attributes := uint16(0)
	if b.packed {
		attributes = attributeZstd
	}
	h := b.Buffer
	binary.BigEndian.PutUint32(h[0:], uint32(len(h)-4))
	binary.BigEndian.PutUint32(h[atLength:], uint32(len(h)-atEpoch))
	binary.BigEndian.PutUint32(h[atEpoch:], 0xffffffff)
	h[atMagic] = 2
	binary.BigEndian.PutUint16(h[atAttributes:], attributes)
	binary.BigEndian.PutUint32(h[atLastDelta:], uint32(b.Count-1))
	binary.BigEndian.PutUint64(h[atFirstTime:], uint64(b.firstTime))
	binary.BigEndian.PutUint64(h[atMaxTime:], uint64(b.MaxTime))
	binary.BigEndian.PutUint64(h[atProducer:], uint64(who.ID))
	binary.BigEndian.PutUint16(h[atProducer+8:], uint16(who.Epoch))
	binary.BigEndian.PutUint32(h[atSequence:], uint32(sequence))
	binary.BigEndian.PutUint32(h[atCount:], uint32(b.Count))
	binary.BigEndian.PutUint32(h[atChecksum:], crc32.Checksum(h[atAttributes:], castagnoli))
}

func (b *Batch) compress(codec *compression.Packer) {
	packed := TakeBuffer(len(b.Buffer))[:batchHeader]
	clear(packed)
	packed = codec.Append(packed, b.Buffer[batchHeader:])
	GiveBuffer(b.Buffer)
	b.Buffer, b.packed = packed, true
}

// OffsetOf returns the offset of a record by index, -1 if the broker no
// longer knew it.
func (b *Batch) OffsetOf(index int) int64 {
	if b.baseOffset < 0 {
		return -1
	}
	return b.baseOffset + int64(index)
}

// Settle hands the outcome to all waiting callers. It is called once.
func (b *Batch) Settle(baseOffset int64, err error) {
	b.baseOffset, b.Err = baseOffset, err
	GiveBuffer(b.Buffer)
	b.Buffer = nil
	close(b.Done)
}

// Buffers are pooled by size class, so that a quiet partition does not
// hold a busy one's memory.
var bufferPools = [...]struct {
	size int
	pool *sync.Pool
}{
	{4 << 10, &sync.Pool{}}, {64 << 10, &sync.Pool{}}, {256 << 10, &sync.Pool{}}, {1 << 20, &sync.Pool{}},
}

// TakeBuffer returns an empty buffer with room for at least n bytes.
func TakeBuffer(n int) []byte {
	for i := range bufferPools {
		class := &bufferPools[i]
		if n > class.size {
			continue
		}
		if held, _ := class.pool.Get().(*[]byte); held != nil {
			return (*held)[:0]
		}
		return make([]byte, 0, class.size)
	}
	return make([]byte, 0, n)
}

// GiveBuffer returns an unused buffer to its pool.
func GiveBuffer(b []byte) {
	for i := range bufferPools {
		if cap(b) == bufferPools[i].size {
			b = b[:0]
			bufferPools[i].pool.Put(&b)
			return
		}
	}
}

// growBuffer makes room for n more bytes, in a larger class if needed.
func growBuffer(b []byte, n int) []byte {
	if cap(b)-len(b) >= n {
		return b
	}
	larger := append(TakeBuffer(len(b)+n), b...)
	GiveBuffer(b)
	return larger
}

// Outgoing is a message for the encoder, with sorted headers and a separate
// key. It shares the message's strings, so that only the batch copies them.
type Outgoing struct {
	Key     string
	Keyed   bool // distinguishes an empty key from none
	value   []byte
	headers []Pair
}

type Pair struct{ name, value string }

// NewOutgoing maps a message to a record: metadata to headers by name,
// UUID to ce_id unless metadata has one, payload to value. The result
// uses headers as scratch space.
func NewOutgoing(m *message.Message, headers []Pair) Outgoing {
	out := Outgoing{value: m.Payload, headers: headers[:0]}
	for name, value := range m.Metadata {
		if name == bus.KeyMetadata {
			out.Key, out.Keyed = value, true
			continue
		}
		out.headers = append(out.headers, Pair{name, value})
	}
	if _, named := m.Metadata[bus.HeaderID]; !named && m.UUID != "" {
		out.headers = append(out.headers, Pair{bus.HeaderID, m.UUID})
	}
	slices.SortFunc(out.headers, func(a, b Pair) int { return strings.Compare(a.name, b.name) })
	return out
}

// Bound returns a size that the encoded record never exceeds.
func (o Outgoing) Bound() int {
	n := 64 + len(o.Key) + len(o.value)
	for _, h := range o.headers {
		n += 10 + len(h.name) + len(h.value)
	}
	return n
}

func appendRecord(dst []byte, out Outgoing, timeDelta int64, index int) []byte {
	dst = binary.AppendVarint(dst, int64(out.encodedSize(timeDelta, index)))
	dst = append(dst, 0)
	dst = binary.AppendVarint(dst, timeDelta)
	dst = binary.AppendVarint(dst, int64(index))
	dst = wire.AppendNullable(dst, out.Key, !out.Keyed)
	dst = wire.AppendNullable(dst, out.value, out.value == nil)
	dst = binary.AppendVarint(dst, int64(len(out.headers)))
	for _, h := range out.headers {
		dst = wire.AppendNullable(dst, h.name, false)
		dst = wire.AppendNullable(dst, h.value, false)
	}
	return dst
}

// encodedSize returns the length of the record after its own length field.
func (o Outgoing) encodedSize(timeDelta int64, index int) int {
	n := 1 + varintSize(timeDelta) + varintSize(int64(index)) + varintSize(int64(len(o.headers)))
	n += nullableSize(len(o.Key), !o.Keyed) + nullableSize(len(o.value), o.value == nil)
	for _, h := range o.headers {
		n += nullableSize(len(h.name), false) + nullableSize(len(h.value), false)
	}
	return n
}

func nullableSize(length int, null bool) int {
	if null {
		return 1
	}
	return varintSize(int64(length)) + length
}

// varintSize returns the length of v in zigzag base 128.
func varintSize(v int64) int {
	u := uint64(v<<1) ^ uint64(v>>63)
	n := 1
	for ; u >= 0x80; u >>= 7 {
		n++
	}
	return n
}
