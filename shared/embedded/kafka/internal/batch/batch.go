package batch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/segmentio/kafka-go/compress"
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

// A Record is one record of a batch. It aliases what Records has read.
type Record struct {
	Offset int64
	Time   int64  // milliseconds
	Key    []byte // nil: none
	Value  []byte // nil: a tombstone
	raw    []byte
}

// maxRecordsBytes is the most that a batch may have once decompressed.
const maxRecordsBytes = 256 << 20

// Records returns the records of a whole batch.
func (b Batch) Records() ([]Record, error) {
	plain, err := b.plain()
	if err != nil {
		return nil, err
	}
	records := make([]Record, 0, min(b.Count(), len(plain)/7+1))
	s := &scanner{rest: plain}
	for range b.Count() {
		records = append(records, s.record(b))
		if s.bad {
			return nil, fmt.Errorf("%w: record %d at offset %d can't be read", ErrCorrupt, len(records)-1, b.Base())
		}
	}
	return records, nil
}

func (b Batch) plain() ([]byte, error) {
	codec := compress.Compression(b.attributes() & codecBits).Codec()
	if codec == nil {
		return b[HeaderBytes:], nil
	}
	in := codec.NewReader(bytes.NewReader(b[HeaderBytes:]))
	defer in.Close()
	plain, err := io.ReadAll(io.LimitReader(in, maxRecordsBytes+1))
	if err == nil && len(plain) > maxRecordsBytes {
		err = fmt.Errorf("more than %d bytes", maxRecordsBytes)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: its records can't be decompressed: %w", ErrCorrupt, err)
	}
	return plain, nil
}

// A scanner reads records; bad once they end too early.
type scanner struct {
	rest []byte
	bad  bool
}

func (s *scanner) record(b Batch) (r Record) {
	body := &scanner{rest: s.take(s.varint(), &r.raw)}
	body.take(1, nil) // attributes, unused
	r.Time = b.int64(firstTimeAt) + body.varint()
	if b.attributes()&appendTimeBit != 0 {
		r.Time = b.MaxTime()
	}
	r.Offset = b.Base() + body.varint()
	r.Key = body.field()
	r.Value = body.field()
	s.bad = s.bad || body.bad
	return r
}

func (s *scanner) varint() int64 {
	n, size := binary.Varint(s.rest)
	if size <= 0 {
		s.bad = true
		return 0
	}
	s.rest = s.rest[size:]
	return n
}

// take returns the next n bytes, and in raw the same with their length.
func (s *scanner) take(n int64, raw *[]byte) (taken []byte) {
	if n < 0 || n > int64(len(s.rest)) {
		s.bad = true
		return nil
	}
	taken, s.rest = s.rest[:n:n], s.rest[n:]
	if raw != nil {
		*raw = taken
	}
	return taken
}

func (s *scanner) field() []byte {
	n := s.varint()
	if n == -1 {
		return nil
	}
	return s.take(n, nil)
}

// Select returns a sealed batch with some of a batch's records, compressed
// as before, that takes the same offsets.
func Select(b Batch, records []Record) (Batch, error) {
	var plain []byte
	for _, r := range records {
		plain = binary.AppendVarint(plain, int64(len(r.raw)))
		plain = append(plain, r.raw...)
	}
	out := bytes.NewBuffer(append(make([]byte, 0, len(b)), b[:HeaderBytes]...))
	codec := compress.Compression(b.attributes() & codecBits).Codec()
	if codec == nil {
		out.Write(plain)
		return Batch(out.Bytes()).finished(b.Base(), len(records)), nil
	}
	w := codec.NewWriter(out)
	if _, err := w.Write(plain); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return Batch(out.Bytes()).finished(b.Base(), len(records)), nil
}

// A Pair is a record to be written; without Value it is a tombstone.
type Pair struct{ Key, Value []byte }

// New returns an unsealed batch of pairs, without producer.
func New(millis int64, pairs []Pair) Batch {
	b := make(Batch, HeaderBytes)
	b[magicAt] = 2
	for i := producerAt; i < countAt; i++ {
		b[i] = 0xff
	}
	binary.BigEndian.PutUint64(b[firstTimeAt:], uint64(millis))       //nolint:gosec // as the protocol has it
	binary.BigEndian.PutUint64(b[maxTimeAt:], uint64(millis))         //nolint:gosec // as the protocol has it
	binary.BigEndian.PutUint32(b[lastDeltaAt:], uint32(len(pairs)-1)) //nolint:gosec // a few
	for i, p := range pairs {
		body := []byte{0, 0} // attributes, time as of the batch
		body = binary.AppendVarint(body, int64(i))
		body = appendField(appendField(body, p.Key), p.Value)
		body = append(body, 0) // no headers
		b = append(binary.AppendVarint(b, int64(len(body))), body...)
	}
	return b.finished(0, len(pairs))
}

func appendField(b, field []byte) []byte {
	if field == nil {
		return binary.AppendVarint(b, -1)
	}
	return append(binary.AppendVarint(b, int64(len(field))), field...)
}

// Sequenced gives an unsealed batch a producer's sequence.
func Sequenced(b Batch, producer int64, epoch int16, first int32) Batch {
	binary.BigEndian.PutUint64(b[producerAt:], uint64(producer)) //nolint:gosec // as the protocol has it
	binary.BigEndian.PutUint16(b[epochAt:], uint16(epoch))       //nolint:gosec // as the protocol has it
	binary.BigEndian.PutUint32(b[sequenceAt:], uint32(first))    //nolint:gosec // as the protocol has it
	return b.finished(0, b.Count())
}

// Merge returns a sealed batch, compressed by zstd and without producer,
// of the records of neighbours. Their offsets and times stay.
func Merge(batches []Batch, codec *zstd.Encoder) (Batch, error) {
	first, newest := batches[0], int64(-1)
	head := make(Batch, HeaderBytes)
	copy(head, first[:HeaderBytes])
	begun, count := first.int64(firstTimeAt), 0
	var plain []byte
	for _, b := range batches {
		records, err := b.Records()
		if err != nil {
			return nil, err
		}
		for _, r := range records {
			if plain, err = r.appendTo(plain, r.Time-begun, r.Offset-first.Base()); err != nil {
				return nil, err
			}
			newest = max(newest, r.Time)
		}
		count += len(records)
	}
	binary.BigEndian.PutUint16(head[attributesAt:], uint16(compress.Zstd))
	binary.BigEndian.PutUint32(head[lastDeltaAt:], uint32(batches[len(batches)-1].End()-first.Base()-1)) //nolint:gosec // far below Span
	binary.BigEndian.PutUint64(head[maxTimeAt:], uint64(newest))                                         //nolint:gosec // as the protocol has it
	for i := producerAt; i < countAt; i++ {
		head[i] = 0xff // none
	}
	return Batch(codec.EncodeAll(plain, head)).finished(first.Base(), count), nil
}

// appendTo appends the record as one of another batch.
func (r Record) appendTo(plain []byte, time, offset int64) ([]byte, error) {
	rest := &scanner{rest: r.raw}
	rest.take(1, nil) // attributes, unused
	rest.varint()     // time
	rest.varint()     // offset
	if rest.bad {
		return nil, fmt.Errorf("%w: record at offset %d can't be read", ErrCorrupt, r.Offset)
	}
	body := binary.AppendVarint(binary.AppendVarint([]byte{0}, time), offset)
	plain = binary.AppendVarint(plain, int64(len(body)+len(rest.rest)))
	return append(append(plain, body...), rest.rest...), nil
}
