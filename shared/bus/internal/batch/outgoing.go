package batch

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/wire"
)

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
