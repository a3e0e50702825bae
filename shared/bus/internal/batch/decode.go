package batch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/segmentio/kafka-go/compress"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/wire"
)

const (
	attributeCompression = 0x07
	attributeControl     = 0x20
	attributeLogTime     = 0x08

	// maxUnpacked bounds an unpacked batch in bytes, so that a damaged
	// one cannot take all memory.
	maxUnpacked = 256 << 20

	// maxNames bounds how many header names a Decoder remembers.
	maxNames = 256
)

// Decoder turns the bytes of a Fetch answer into records. Only one
// goroutine may use it.
type Decoder struct {
	topic string
	names map[string]string // header names seen so far: few and constant; bounded by maxNames
	order []string          // of the record before: most records have the same names in the same places; bounded by maxNames
}

func NewDecoder(topic string) *Decoder { return &Decoder{topic: topic, names: make(map[string]string)} }

// A Piece is an unpacked part of an answer.
type Piece struct {
	Records []bus.Record
	Next    int64  // the offset after the last whole batch, past holes and empty batches of compaction
	Bytes   int    // the records' weight in limits of memory
	Rest    []byte // of the answer, still packed; nil: no whole batch is left
}

// Piece reads batches of set until it has unpacked most bytes, at least
// one batch: well compressed data must not take all memory at once. It
// returns the records from offset on.
func (d *Decoder) Piece(set []byte, partition int, offset int64, most int) (p Piece, err error) {
	p.Next = offset
	for len(set) >= batchHeader-4 && p.Bytes < most {
		length := int(int32(binary.BigEndian.Uint32(set[8:])))
		if length < batchHeader-16 {
			return p, fmt.Errorf("cannot read a batch of %d bytes at offset %d", length, p.Next)
		}
		if len(set) < 12+length {
			return p, nil // the broker truncated the last batch; it comes again
		}
		was := len(p.Records)
		if p.Records, err = d.batch(p.Records, set[:12+length], partition, offset); err != nil {
			return p, fmt.Errorf("cannot read the batch at offset %d of %q, partition %d: %w", p.Next, d.topic, partition, err)
		}
		for _, r := range p.Records[was:] {
			p.Bytes += r.Size()
		}
		last := int64(binary.BigEndian.Uint64(set)) + int64(int32(binary.BigEndian.Uint32(set[23:])))
		p.Next = max(p.Next, last+1)
		set = set[12+length:]
	}
	if len(set) >= batchHeader-4 {
		p.Rest = set
	}
	return p, nil
}

// batch reads one whole record batch, from its base offset on.
func (d *Decoder) batch(dst []bus.Record, b []byte, partition int, offset int64) ([]bus.Record, error) {
	if magic := b[16]; magic != 2 {
		return dst, fmt.Errorf("unknown format %d", magic)
	}
	if want, got := binary.BigEndian.Uint32(b[17:]), crc32.Checksum(b[21:], castagnoli); want != got {
		return dst, fmt.Errorf("checksum is %08x, content has %08x", want, got)
	}
	attributes := binary.BigEndian.Uint16(b[21:])
	if attributes&attributeControl != 0 {
		return dst, nil
	}
	body, err := unpack(b[batchHeader-4:], compress.Compression(attributes&attributeCompression))
	if err != nil {
		return dst, err
	}
	first := bus.Record{
		Topic: d.topic, Partition: partition, Offset: int64(binary.BigEndian.Uint64(b)),
		Time: time.UnixMilli(int64(binary.BigEndian.Uint64(b[27:]))).UTC(),
	}
	if attributes&attributeLogTime != 0 {
		first.Time = time.UnixMilli(int64(binary.BigEndian.Uint64(b[35:]))).UTC()
	}
	return d.unroll(dst, first, body, int(int32(binary.BigEndian.Uint32(b[57:]))), offset, attributes&attributeLogTime != 0)
}

// unroll reads the records of a batch at offset or later.
func (d *Decoder) unroll(dst []bus.Record, first bus.Record, body []byte, count int, offset int64, logTime bool) ([]bus.Record, error) {
	r := &wire.Scanner{Rest: body}
	for range count {
		one := &wire.Scanner{Rest: r.Bytes(int(r.Varint()))}
		record := d.record(first, one, logTime)
		if r.Bad || one.Bad {
			return dst, errors.New("a record ends too early")
		}
		if record.Offset >= offset {
			dst = append(dst, record)
		}
	}
	return dst, nil
}

func (d *Decoder) record(first bus.Record, r *wire.Scanner, logTime bool) bus.Record {
	r.Bytes(1) // attributes: none are defined
	record := first
	if delta := r.Varint(); !logTime {
		record.Time = first.Time.Add(time.Duration(delta) * time.Millisecond)
	}
	record.Offset += r.Varint()
	record.Key = r.Bytes(int(r.Varint()))
	record.Value = r.Bytes(int(r.Varint()))
	if n := int(r.Varint()); n > 0 && n <= len(r.Rest) {
		record.Headers = make([]bus.Header, n)
		for i := range record.Headers {
			record.Headers[i] = bus.Header{Key: d.name(i, r.Bytes(int(r.Varint()))), Value: r.Bytes(int(r.Varint()))}
		}
	}
	return record
}

// name returns a header's name without a copy for each record.
func (d *Decoder) name(place int, b []byte) string {
	if place < len(d.order) && d.order[place] == string(b) {
		return d.order[place]
	}
	s, known := d.names[string(b)]
	if !known {
		s = string(b)
		if len(d.names) < maxNames {
			d.names[s] = s
		}
	}
	if place < len(d.order) {
		d.order[place] = s
	} else if place < maxNames {
		d.order = append(d.order, s)
	}
	return s
}

// unpackers are pooled: each holds a window of memory.
var unpackers = sync.Pool{New: func() any {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxUnpacked))
	if err != nil {
		return err
	}
	return d
}}

func unpack(b []byte, packed compress.Compression) ([]byte, error) {
	switch packed {
	case compress.None:
		return b, nil
	case compress.Zstd:
		return unpackZstd(b)
	}
	codec := packed.Codec()
	if codec == nil {
		return nil, fmt.Errorf("unknown compression %d", packed)
	}
	r := codec.NewReader(bytes.NewReader(b))
	defer r.Close()
	out, err := io.ReadAll(io.LimitReader(r, maxUnpacked+1))
	if len(out) > maxUnpacked {
		return nil, fmt.Errorf("a batch unpacks to more than %d bytes", maxUnpacked)
	}
	return out, err
}

func unpackZstd(b []byte) ([]byte, error) {
	switch d := unpackers.Get().(type) {
	case *zstd.Decoder:
		defer unpackers.Put(d)
		return d.DecodeAll(b, nil)
	case error:
		return nil, d
	}
	return nil, errors.New("no decoder")
}
