package batch

import (
	"encoding/binary"
	"fmt"

	"github.com/klauspost/compress/zstd"
	"github.com/segmentio/kafka-go/compress"
)

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
