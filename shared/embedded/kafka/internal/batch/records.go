package batch

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/segmentio/kafka-go/compress"
)

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
