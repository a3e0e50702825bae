package eventstore

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// Memory keeps events in the process, for tests of domains. It encodes and decodes like a real
// store, so that codecs are tested too.
type Memory[E any] struct {
	codec   Codec[E]
	project func(events []Recorded[E]) error

	mu     sync.Mutex
	stored []stored
	heads  map[Stream]int64 // bounded by the test: nothing else keeps events in memory
}

type stored struct {
	stream   Stream
	version  int64
	encoded  Encoded
	metadata Metadata
}

// NewMemory returns an empty store. project may be nil; it sees every append first, and its error
// undoes it.
func NewMemory[E any](codec Codec[E], project func(events []Recorded[E]) error) *Memory[E] {
	return &Memory[E]{codec: codec, project: project, heads: map[Stream]int64{}}
}

// Read implements Store.
func (m *Memory[E]) Read(_ context.Context, stream Stream) ([]Recorded[E], error) {
	if err := stream.Validate(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.decode(0, len(m.stored), func(s stored) bool { return s.stream == stream })
}

// Append implements Store.
func (m *Memory[E]) Append(_ context.Context, stream Stream, expected int64, metadata Metadata, events ...E) error {
	if err := stream.Validate(); err != nil {
		return err
	}
	encoded, err := m.codec.EncodeAll(events)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.heads[stream] != expected {
		return Conflict(stream, expected)
	}
	return m.append(stream, metadata, encoded)
}

// ReadAll returns the events after a cursor in the order of their commits, at most limit.
func (m *Memory[E]) ReadAll(_ context.Context, after Cursor, limit int) ([]Recorded[E], error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	from := min(int(after), len(m.stored))
	return m.decode(from, min(from+limit, len(m.stored)), func(stored) bool { return true })
}

// append stores events behind the head of their stream and projects them; the caller holds the
// lock.
func (m *Memory[E]) append(stream Stream, metadata Metadata, encoded []Encoded) error {
	before := len(m.stored)
	for i, e := range encoded {
		version := m.heads[stream] + int64(i) + 1
		m.stored = append(m.stored, stored{stream, version, e, maps.Clone(metadata)})
	}
	if err := m.projectFrom(before); err != nil {
		m.stored = slices.Delete(m.stored, before, len(m.stored))
		return err
	}
	m.heads[stream] += int64(len(encoded))
	return nil
}

func (m *Memory[E]) projectFrom(index int) error {
	events, err := m.decode(index, len(m.stored), func(stored) bool { return true })
	if err != nil || m.project == nil {
		return err
	}
	return m.project(events)
}

// decode returns the stored events [from, to) that keep accepts. An event's cursor is its index
// plus one.
func (m *Memory[E]) decode(from, to int, keep func(stored) bool) ([]Recorded[E], error) {
	var events []Recorded[E]
	for i := from; i < to; i++ {
		s := m.stored[i]
		if !keep(s) {
			continue
		}
		recorded := Recorded[E]{Stream: s.stream, Version: s.version, Metadata: maps.Clone(s.metadata)}
		recorded.Cursor = Cursor(i + 1)
		if err := m.codec.DecodeInto(&recorded, s.encoded); err != nil {
			return nil, err
		}
		events = append(events, recorded)
	}
	return events, nil
}
