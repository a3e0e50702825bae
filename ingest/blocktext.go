package ingest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
)

// blockVersion is the first byte of a stored block. Old versions stay readable.
const blockVersion = 1

// errBlock means that a block's stored form is damaged.
var errBlock = errors.New("cannot read block: its form is damaged")

// AppendBinary appends the block's stored form, uncompressed: a
// version, the environments, the batches, the directory (per entry:
// time, level, environment, batch, index, length), then all texts.
// Numbers are varints of encoding/binary.
func (b Block) AppendBinary(dst []byte) []byte {
	environments, batches := newTable[string](), newTable[batchOf]()
	for _, entry := range b.List {
		environments.number(entry.Environment)
		batches.number(batchOf{entry.Batch, entry.ReceivedAt.UnixNano()})
	}
	dst = append(dst, blockVersion)
	dst = binary.AppendUvarint(dst, uint64(len(environments.list)))
	for _, environment := range environments.list {
		dst = binary.AppendUvarint(dst, uint64(len(environment)))
		dst = append(dst, environment...)
	}
	dst = binary.AppendUvarint(dst, uint64(len(batches.list)))
	for _, batch := range batches.list {
		dst = append(dst, batch.id[:]...)
		dst = binary.AppendVarint(dst, batch.receivedNanos)
	}
	return b.appendEntries(dst, &environments, &batches)
}

type batchOf struct {
	id            [16]byte
	receivedNanos int64
}

func (b Block) appendEntries(dst []byte, environments *table[string], batches *table[batchOf]) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(b.List)))
	previous := int64(0)
	for _, entry := range b.List {
		dst = binary.AppendVarint(dst, entry.Time.Seconds-previous)
		dst = binary.AppendUvarint(dst, uint64(entry.Time.Nanos))
		dst = append(dst, byte(entry.Level))
		dst = binary.AppendUvarint(dst, environments.number(entry.Environment))
		dst = binary.AppendUvarint(dst, batches.number(batchOf{entry.Batch, entry.ReceivedAt.UnixNano()}))
		dst = binary.AppendUvarint(dst, uint64(entry.Index))
		dst = binary.AppendUvarint(dst, uint64(len(entry.Text)))
		previous = entry.Time.Seconds
	}
	for _, entry := range b.List {
		dst = append(dst, entry.Text...)
	}
	return dst
}

// A table numbers distinct values in order of arrival; most equal the one before.
type table[T comparable] struct {
	at   map[T]uint64 // bounded by the entries of a block
	list []T
	last uint64 // the number given last
}

func newTable[T comparable]() table[T] { return table[T]{at: map[T]uint64{}} }

func (t *table[T]) number(value T) uint64 {
	if len(t.list) > 0 && t.list[t.last] == value {
		return t.last
	}
	number, known := t.at[value]
	if !known {
		number = uint64(len(t.list))
		t.at[value] = number
		t.list = append(t.list, value)
	}
	t.last = number
	return number
}

// ParseEntries reads the entries back in order. Their texts share data's memory.
func ParseEntries(data []byte) ([]Stored, error) {
	r := blockReader{data: data}
	if version := r.byte(); version != blockVersion {
		return nil, fmt.Errorf("cannot read block of version %d", version)
	}
	environments := make([]string, r.count())
	for i := range environments {
		environments[i] = string(r.bytes(r.count()))
	}
	batches := make([]batchOf, r.count())
	for i := range batches {
		copy(batches[i].id[:], r.bytes(16))
		batches[i].receivedNanos = r.varint()
	}
	entries := r.entries(environments, batches)
	if r.failed || len(r.data) > 0 {
		return nil, errBlock
	}
	return entries, nil
}

func (r *blockReader) entries(environments []string, batches []batchOf) []Stored {
	entries := make([]Stored, r.count())
	lengths := make([]int, len(entries))
	seconds := int64(0)
	for i := range entries {
		seconds += r.varint()
		entry := Stored{Place: Place{Time: Instant{seconds, uint32(min(r.uvarint(), math.MaxUint32))}}, Level: Severity(r.byte())}
		environment, batch := r.uvarint(), r.uvarint()
		entry.Index, lengths[i] = r.index(), r.count()
		if environment >= uint64(len(environments)) || batch >= uint64(len(batches)) {
			r.failed = true
			return nil
		}
		entry.Environment, entry.Batch = environments[environment], batches[batch].id
		entry.ReceivedAt = time.Unix(0, batches[batch].receivedNanos).UTC()
		entries[i] = entry
	}
	for i := range entries {
		entries[i].Text = r.bytes(lengths[i])
	}
	return entries
}

// A blockReader reads from the front of data; after a failure it returns zeros.
type blockReader struct {
	data   []byte
	failed bool
}

func (r *blockReader) byte() byte {
	if b := r.bytes(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (r *blockReader) bytes(n int) []byte {
	if n < 0 || n > len(r.data) {
		r.failed, r.data = true, nil
		return nil
	}
	taken := r.data[:n:n]
	r.data = r.data[n:]
	return taken
}

func (r *blockReader) uvarint() uint64 {
	value, size := binary.Uvarint(r.data)
	r.bytes(max(size, 0))
	r.failed = r.failed || size <= 0
	return value
}

func (r *blockReader) varint() int64 {
	value, size := binary.Varint(r.data)
	r.bytes(max(size, 0))
	r.failed = r.failed || size <= 0
	return value
}

// count reads the number of following items, each of at least one byte:
// a larger number means damage.
func (r *blockReader) count() int {
	value := r.uvarint()
	if value > uint64(len(r.data)) {
		r.failed, r.data = true, nil
		return 0
	}
	return int(value)
}

func (r *blockReader) index() int {
	value := r.uvarint()
	if value > math.MaxInt32 {
		r.failed = true
		return 0
	}
	return int(value)
}
