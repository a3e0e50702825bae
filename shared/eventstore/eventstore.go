package eventstore

import (
	"context"
	"errors"
	"fmt"
)

// A Stream names one stream. The organization is part of the name, so that
// organizations can't reach each other's; streams without one use Installation.
type Stream struct {
	Organization string
	Name         string
}

// Installation is the organization of the installation's own streams.
// In row level security it means every organization, so no single one
// can read such a stream.
const Installation = "*"

func (s Stream) String() string {
	return s.Organization + "/" + s.Name
}

// Validate refuses a stream that lacks one of its two names.
func (s Stream) Validate() error {
	if s.Organization == "" || s.Name == "" {
		return fmt.Errorf("cannot use stream %q: it needs an organization and a name", s)
	}
	return nil
}

// Metadata is the context of a change: its actor, its request.
type Metadata map[string]string

// A Cursor is a place in the order of commits: everything up to it has
// been read. 0 is before the first event.
type Cursor int64

// Recorded is an event as it was stored.
type Recorded[E any] struct {
	Stream   Stream
	Version  int64 // from 1, one more for each event; pruning leaves gaps
	Cursor   Cursor
	Metadata Metadata
	Event    E    // zero if it is erased or unknown
	Erased   bool // only its place is left
	Unknown  bool // private, of a later version; see Codec.DecodeOutward
}

// Store keeps streams of events of type E. See eventstorepg.Store.
type Store[E any] interface {
	// Read returns the events of a stream, oldest first; none of a
	// missing one. A stream's version is that of its last event.
	Read(ctx context.Context, stream Stream) ([]Recorded[E], error)
	// Append adds events after version expected, all or none. It fails
	// with ErrConflict if the stream is at another version.
	Append(ctx context.Context, stream Stream, expected int64, metadata Metadata, events ...E) error
}

// ErrConflict means that a stream was at another version than an append
// expected: another decision came first.
var ErrConflict = errors.New("the stream is at another version")

// ErrErased means that a stream was erased: it has no state, and
// takes no events.
var ErrErased = errors.New("the stream was erased")

// Conflict returns ErrConflict with the stream and the expected version.
func Conflict(stream Stream, expected int64) error {
	return fmt.Errorf("cannot append to %q at version %d: %w", stream, expected, ErrConflict)
}

// A Codec encodes and decodes events. Names carry the version of the
// form, such as "tenants.v1.project_created", and are literals, so that
// renaming a Go type changes no data. Decode upgrades old versions:
// Apply sees only the newest.
type Codec[E any] struct {
	Encode func(event E) (name string, data []byte, err error) // data is JSON
	Decode func(name string, data []byte) (E, error)

	// Private reports whether an event is never published; nil: none is
	// private. It is stored, for programs that don't know the event.
	Private func(event E) bool
	// Knows reports whether Decode reads events of a name; nil: it reads all.
	Knows func(name string) bool
}

// Encoded is one event in its stored form.
type Encoded struct {
	Name    string
	Data    []byte
	Private bool // its writer declared it never published
}

// EncodeAll encodes events in order; it stops at the first error.
func (c Codec[E]) EncodeAll(events []E) ([]Encoded, error) {
	encoded := make([]Encoded, 0, len(events))
	for _, event := range events {
		name, data, err := c.Encode(event)
		if err != nil {
			return nil, fmt.Errorf("cannot encode event %T: %w", event, err)
		}
		encoded = append(encoded, Encoded{Name: name, Data: data, Private: c.Private != nil && c.Private(event)})
	}
	return encoded, nil
}

// DecodeInto decodes one stored event into recorded. Its error names
// stream and version.
func (c Codec[E]) DecodeInto(recorded *Recorded[E], stored Encoded) error {
	event, err := c.Decode(stored.Name, stored.Data)
	if err != nil {
		return fmt.Errorf("cannot decode event %q at %q version %d: %w", stored.Name, recorded.Stream, recorded.Version, err)
	}
	recorded.Event = event
	return nil
}

// DecodeOutward is DecodeInto for publishers of events: a private one
// of a later version is Unknown.
func (c Codec[E]) DecodeOutward(recorded *Recorded[E], stored Encoded) error {
	if stored.Private && c.Knows != nil && !c.Knows(stored.Name) {
		recorded.Unknown = true
		return nil
	}
	return c.DecodeInto(recorded, stored)
}

// A Folder is a pointer to a state S to which events of type E apply.
// Apply never fails: a stored event is a fact.
type Folder[S, E any] interface {
	*S
	Apply(event E)
}

// Load folds the events of a stream, and returns its version: 0 for
// a missing stream.
func Load[S, E any, P Folder[S, E]](ctx context.Context, store Store[E], stream Stream) (S, int64, error) {
	var state S
	history, err := store.Read(ctx, stream)
	if err != nil {
		return state, 0, err
	}
	return Fold[S, E, P](history), VersionOf(history), nil
}

// VersionOf returns a history's version: that of its last event, as
// earlier ones may be pruned.
func VersionOf[E any](history []Recorded[E]) int64 {
	if len(history) == 0 {
		return 0
	}
	return history[len(history)-1].Version
}

// Fold returns the state after a history.
func Fold[S, E any, P Folder[S, E]](history []Recorded[E]) S {
	var state S
	for _, recorded := range history {
		P(&state).Apply(recorded.Event)
	}
	return state
}
