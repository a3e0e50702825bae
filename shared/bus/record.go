package bus

import (
	"strings"
	"time"
)

// Header is one header of a record. Keys may repeat; their order is kept.
type Header struct {
	Key   string
	Value []byte
}

// Record is one record of a topic. Key and Value may be nil; a nil
// Value is a tombstone. Records share bytes, which must not be changed.
type Record struct {
	Topic     string
	Partition int
	Offset    int64
	Key       []byte
	Value     []byte
	Headers   []Header
	Time      time.Time // set by the producer, in milliseconds
}

// IsFiller reports whether the record stands at the offset of one that
// the log has lost: see package logend. It has neither key, value nor
// headers.
func (r Record) IsFiller() bool { return r.Key == nil && r.Value == nil && len(r.Headers) == 0 }

// Header returns the value of the first header of that name, or "".
func (r Record) Header(name string) string {
	for i := range r.Headers {
		if r.Headers[i].Key == name {
			return string(r.Headers[i].Value)
		}
	}
	return ""
}

// Lookup returns Header for a reader of many headers: it copies all
// values at once.
func (r Record) Lookup() func(name string) string {
	headers, values := r.Headers, joined(r.Headers)
	return func(name string) string {
		from := 0
		for i := range headers {
			to := from + len(headers[i].Value)
			if headers[i].Key == name {
				return values[from:to]
			}
			from = to
		}
		return ""
	}
}

func joined(headers []Header) string {
	size := 0
	for i := range headers {
		size += len(headers[i].Value)
	}
	var values strings.Builder
	values.Grow(size)
	for i := range headers {
		values.Write(headers[i].Value)
	}
	return values.String()
}

// Size is the record's weight in limits of memory: its bytes and
// a flat overhead.
func (r Record) Size() int {
	n := len(r.Key) + len(r.Value) + 128
	for _, h := range r.Headers {
		n += len(h.Key) + len(h.Value) + 40
	}
	return n
}

// Position is the place of a record in its topic. Offset is -1 for a
// written record whose offset the broker no longer knew.
type Position struct {
	Partition int
	Offset    int64
}

// Detached returns the record with all bytes copied into one
// allocation; nil stays nil. The headers are changed in place.
func (r Record) Detached() Record {
	size := len(r.Key) + len(r.Value)
	for i := range r.Headers {
		size += len(r.Headers[i].Value)
	}
	room := make([]byte, 0, size)
	r.Key, room = moveInto(room, r.Key)
	r.Value, room = moveInto(room, r.Value)
	for i := range r.Headers {
		r.Headers[i].Value, room = moveInto(room, r.Headers[i].Value)
	}
	return r
}

// moveInto copies b into room.
func moveInto(room, b []byte) (moved, rest []byte) {
	if b == nil {
		return nil, room
	}
	room = append(room, b...)
	return room[len(room)-len(b) : len(room) : len(room)], room
}
