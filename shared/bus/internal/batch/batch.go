package batch

import (
	"encoding/binary"
	"hash/crc32"
	"time"

	"github.com/klauspost/compress/zstd"
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
func (b *Batch) Seal(who Identity, sequence int32, codec *zstd.Encoder) {
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

func (b *Batch) compress(codec *zstd.Encoder) {
	packed := TakeBuffer(len(b.Buffer))[:batchHeader]
	clear(packed)
	packed = codec.EncodeAll(b.Buffer[batchHeader:], packed)
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
