package eventstore

import "context"

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
