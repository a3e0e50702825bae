package eventstore

import "context"

// A Folder is a pointer to a state S that events of type E bring forward.
// Apply is total: a stored event is a fact.
type Folder[S, E any] interface {
	*S
	Apply(event E)
}

// Load folds the events of a stream, and returns its version: 0
// for a stream that does not exist.
func Load[S, E any, P Folder[S, E]](ctx context.Context, store Store[E], stream Stream) (S, int64, error) {
	var state S
	history, err := store.Read(ctx, stream)
	if err != nil {
		return state, 0, err
	}
	return Fold[S, E, P](history), VersionOf(history), nil
}

// VersionOf is the version of the stream with a history: that of its
// last event, for earlier ones may be gone.
func VersionOf[E any](history []Recorded[E]) int64 {
	if len(history) == 0 {
		return 0
	}
	return history[len(history)-1].Version
}

// Fold is the state that a history leads to.
func Fold[S, E any, P Folder[S, E]](history []Recorded[E]) S {
	var state S
	for _, recorded := range history {
		P(&state).Apply(recorded.Event)
	}
	return state
}
