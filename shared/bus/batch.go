package bus

import (
	"encoding/binary"
	"hash/crc32"
	"time"

	"github.com/klauspost/compress/zstd"
)

// Layout of a record batch, version 2, as https://kafka.apache.org/documentation/#recordbatch gives it, after the four bytes of
// size that a Produce request puts before it.
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

// batch is a record batch that grows until it is sealed; sealed, its bytes are final and resent as they are.
type batch struct {
	buffer    []byte
	count     int
	firstTime int64 // milliseconds
	maxTime   int64
	reserved  int // bytes of the publisher's budget
	deadline  time.Time

	producer identity
	sequence int32
	sealed   bool // no record may be added any more
	packed   bool // the records are compressed
	doubtful bool // an attempt may have been written although no answer said so

	done       chan struct{} // closed when offset and err are final
	baseOffset int64
	err        error
}

// identity is what the brokers know an idempotent producer by.
type identity struct {
	id    int64
	epoch int16
}

func newBatch(deadline time.Time, room int) *batch {
	b := &batch{buffer: takeBuffer(batchHeader + room)[:batchHeader], deadline: deadline, done: make(chan struct{}), baseOffset: -1}
	clear(b.buffer)
	return b
}

// add appends one record and returns its index in the batch.
func (b *batch) add(out outgoing, now int64) int {
	if b.count == 0 {
		b.firstTime, b.maxTime = now, now
	}
	b.maxTime = max(b.maxTime, now)
	b.buffer = growBuffer(b.buffer, out.bound())
	b.buffer = appendRecord(b.buffer, out, now-b.firstTime, b.count)
	b.count++
	return b.count - 1
}

// takes reports whether a record of at most n bytes may be added.
func (b *batch) takes(n, limit int) bool { return !b.sealed && len(b.buffer)+n <= limit }

// size is the number of bytes that the batch has now.
func (b *batch) size() int { return len(b.buffer) }

// seal makes the batch final under a producer's identity and sequence. codec compresses the records; nil leaves them as they are.
// A batch that was sealed before gets only the new identity.
func (b *batch) seal(who identity, sequence int32, codec *zstd.Encoder) {
	b.producer, b.sequence, b.sealed = who, sequence, true
	if codec != nil && !b.packed {
		b.compress(codec)
	}
	attributes := uint16(0)
	if b.packed {
		attributes = attributeZstd
	}
	h := b.buffer
	binary.BigEndian.PutUint32(h[0:], uint32(len(h)-4))
	binary.BigEndian.PutUint32(h[atLength:], uint32(len(h)-atEpoch))
	binary.BigEndian.PutUint32(h[atEpoch:], 0xffffffff)
	h[atMagic] = 2
	binary.BigEndian.PutUint16(h[atAttributes:], attributes)
	binary.BigEndian.PutUint32(h[atLastDelta:], uint32(b.count-1))
	binary.BigEndian.PutUint64(h[atFirstTime:], uint64(b.firstTime))
	binary.BigEndian.PutUint64(h[atMaxTime:], uint64(b.maxTime))
	binary.BigEndian.PutUint64(h[atProducer:], uint64(who.id))
	binary.BigEndian.PutUint16(h[atProducer+8:], uint16(who.epoch))
	binary.BigEndian.PutUint32(h[atSequence:], uint32(sequence))
	binary.BigEndian.PutUint32(h[atCount:], uint32(b.count))
	binary.BigEndian.PutUint32(h[atChecksum:], crc32.Checksum(h[atAttributes:], castagnoli))
}

func (b *batch) compress(codec *zstd.Encoder) {
	packed := takeBuffer(len(b.buffer))[:batchHeader]
	clear(packed)
	packed = codec.EncodeAll(b.buffer[batchHeader:], packed)
	giveBuffer(b.buffer)
	b.buffer, b.packed = packed, true
}

// offsetOf is where the record of that index was written, -1 if the broker no longer knew.
func (b *batch) offsetOf(index int) int64 {
	if b.baseOffset < 0 {
		return -1
	}
	return b.baseOffset + int64(index)
}

// settle makes the outcome known to all who wait. It is called once.
func (b *batch) settle(baseOffset int64, err error) {
	b.baseOffset, b.err = baseOffset, err
	giveBuffer(b.buffer)
	b.buffer = nil
	close(b.done)
}
