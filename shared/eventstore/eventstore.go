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
