package batch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// Places of a batch's fields.
const (
	lengthAt     = 8  // int32: bytes after it
	sumAt        = 12 // int32: leader's epoch; in a file the checksum of what CRC does not cover
	magicAt      = 16
	crcAt        = 17 // CRC-32C of all that follows
	attributesAt = 21 // int16
	lastDeltaAt  = 23 // int32: last record's offset minus the base offset
	firstTimeAt  = 27 // int64, milliseconds
	maxTimeAt    = 35 // int64, milliseconds
	producerAt   = 43 // int64
	epochAt      = 51 // int16
	sequenceAt   = 53 // int32: of the first record
	countAt      = 57 // int32

	HeaderBytes = 61
	PrefixBytes = 17 // until the checksum: enough for Prefix
)

// Bits of a batch's attributes.
const (
	codecBits     = 0x07
	appendTimeBit = 0x08
	transactional = 0x10
	control       = 0x20
)

// NoProducer is the producer id of a batch without sequence.
const NoProducer = -1

// MaxBytes is the largest possible batch.
const MaxBytes = 100 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A Batch is a batch's bytes, at least a header.
type Batch []byte

func (b Batch) int64(at int) int64 { return int64(binary.BigEndian.Uint64(b[at:])) } //nolint:gosec // as the protocol has it
func (b Batch) int32(at int) int32 { return int32(binary.BigEndian.Uint32(b[at:])) } //nolint:gosec // as the protocol has it

func (b Batch) attributes() uint16 { return binary.BigEndian.Uint16(b[attributesAt:]) }

// Size returns how many bytes the batch says it has.
func (b Batch) Size() int { return lengthAt + 4 + int(b.int32(lengthAt)) }

// Base returns the offset of the first record.
func (b Batch) Base() int64 { return b.int64(0) }

// End returns the offset after the last record.
func (b Batch) End() int64 { return b.Base() + int64(b.int32(lastDeltaAt)) + 1 }

// Count returns the number of records: 0 once all were compacted away.
func (b Batch) Count() int { return int(b.int32(countAt)) }

// MaxTime returns the time of the newest record, in milliseconds.
func (b Batch) MaxTime() int64 { return b.int64(maxTimeAt) }

func (b Batch) Producer() int64 { return b.int64(producerAt) }
func (b Batch) Epoch() int16 {
	return int16(binary.BigEndian.Uint16(b[epochAt:])) //nolint:gosec // as the protocol has it
}

// Sequences returns the sequence numbers of the first and last record.
func (b Batch) Sequences() (first, last int32) {
	first = b.int32(sequenceAt)
	return first, int32((int64(first) + int64(b.int32(lastDeltaAt))) & 0x7fffffff) //nolint:gosec // 31 bits: after the last comes 0
}

// Errors of Check.
var (
	ErrCorrupt = errors.New("corrupt batch")
	ErrInvalid = errors.New("invalid batch")
)

// Check returns why a broker can't take what a producer sent.
func Check(sent []byte) (Batch, error) {
	b := Batch(sent)
	switch {
	case len(b) < HeaderBytes || b[magicAt] != 2 || b.Size() != len(b):
		return nil, fmt.Errorf("%w: not one whole batch of message format 2", ErrCorrupt)
	case !b.sound():
		return nil, fmt.Errorf("%w: its checksum differs", ErrCorrupt)
	case b.attributes()&codecBits > 4:
		return nil, fmt.Errorf("%w: compression %d is not known", ErrCorrupt, b.attributes()&codecBits)
	case b.attributes()&(transactional|control) != 0:
		return nil, fmt.Errorf("%w: this broker has no transactions", ErrInvalid)
	case b.Count() < 1 || b.int32(lastDeltaAt) != b.int32(countAt)-1:
		return nil, fmt.Errorf("%w: %d records up to the relative offset %d", ErrInvalid, b.Count(), b.int32(lastDeltaAt))
	case b.Producer() >= 0 && (b.Epoch() < 0 || b.int32(sequenceAt) < 0):
		return nil, fmt.Errorf("%w: a producer without epoch or sequence", ErrInvalid)
	}
	return b, nil
}

func (b Batch) sound() bool {
	return crc32.Checksum(b[attributesAt:], castagnoli) == binary.BigEndian.Uint32(b[crcAt:])
}

// Seal gives the batch its offset, and a checksum of the fields that the
// producer's own does not cover, so that a file shows any changed byte.
// Open undoes the latter.
func (b Batch) Seal(base int64) {
	binary.BigEndian.PutUint64(b, uint64(base)) //nolint:gosec // offsets are positive
	binary.BigEndian.PutUint32(b[sumAt:], prefixSum(b))
}

// Open makes a sealed batch one for readers.
func (b Batch) Open() { clear(b[sumAt:magicAt]) } // the leader's epoch is always 0

func prefixSum(b []byte) uint32 {
	sum := crc32.Update(0, castagnoli, b[:sumAt])
	return crc32.Update(sum, castagnoli, b[magicAt:crcAt])
}

// Prefix returns how many bytes a sealed batch has, given at least
// PrefixBytes of it; false if they are not what Seal wrote.
func Prefix(b []byte) (size int, sound bool) {
	size = Batch(b).Size()
	return size, prefixSum(b) == binary.BigEndian.Uint32(b[sumAt:]) && size >= HeaderBytes && size <= MaxBytes
}

// Sound reports whether a whole sealed batch is what Seal wrote.
func (b Batch) Sound() bool {
	size, sound := Prefix(b)
	return sound && size == len(b) && b.sound()
}

// Empty returns a batch without records in place of those from base to
// before end. Of like, if given, it has the producer and its sequence.
func Empty(base, end int64, like Batch) Batch {
	b := make(Batch, HeaderBytes)
	if like != nil {
		copy(b, like[:HeaderBytes])
		clear(b[attributesAt : attributesAt+2])
	} else {
		for i := firstTimeAt; i < countAt; i++ {
			b[i] = 0xff // no times, no producer
		}
	}
	b[magicAt] = 2
	binary.BigEndian.PutUint32(b[lastDeltaAt:], uint32(end-base-1)) //nolint:gosec // see Span
	return b.finished(base, 0)
}

// Span is how many offsets one batch can stand for.
const Span = 1 << 30

// finished sets what depends on the rest.
func (b Batch) finished(base int64, count int) Batch {
	binary.BigEndian.PutUint32(b[lengthAt:], uint32(len(b)-lengthAt-4)) //nolint:gosec // under MaxBytes
	binary.BigEndian.PutUint32(b[countAt:], uint32(count))              //nolint:gosec // as above
	binary.BigEndian.PutUint32(b[crcAt:], crc32.Checksum(b[attributesAt:], castagnoli))
	b.Seal(base)
	return b
}
