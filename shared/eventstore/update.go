package eventstore

import (
	"context"
	"errors"
)

// retries is how often Update tries again after a conflict.
const retries = 5

// A Folder is a pointer to a state S that events of type E bring forward. Apply is total: a stored event is a fact.
type Folder[S, E any] interface {
	*S
	Apply(event E)
}

// Update reads a stream, folds it into a state, lets decide say what follows, and appends that at the version read.
// When somebody else appended meanwhile, it starts again with the new state, at most 5 times, then fails with
// ErrConflict. It returns the state after the new events; decide may return none. An error of decide is returned as it
// is, and nothing is appended. decide runs once per try, so it must not change anything outside.
func Update[S, E any, P Folder[S, E]](ctx context.Context, store Store[E], stream Stream, metadata Metadata,
	decide func(S) ([]E, error)) (S, error) {
	for try := 0; ; try++ {
		state, err := attempt[S, E, P](ctx, store, stream, metadata, decide)
		if !errors.Is(err, ErrConflict) || try == retries {
			return state, err
		}
	}
}

// Load folds the events of a stream, and says at which version it is: 0 for a stream that does not exist.
func Load[S, E any, P Folder[S, E]](ctx context.Context, store Store[E], stream Stream) (S, int64, error) {
	var state S
	history, err := store.Read(ctx, stream)
	if err != nil {
		return state, 0, err
	}
	return Fold[S, E, P](history), int64(len(history)), nil
}

// Fold is the state that a history leads to.
func Fold[S, E any, P Folder[S, E]](history []Recorded[E]) S {
	var state S
	for _, recorded := range history {
		P(&state).Apply(recorded.Event)
	}
	return state
}

func attempt[S, E any, P Folder[S, E]](ctx context.Context, store Store[E], stream Stream, metadata Metadata,
	decide func(S) ([]E, error)) (S, error) {
	var none S
	state, version, err := Load[S, E, P](ctx, store, stream)
	if err != nil {
		return none, err
	}
	events, err := decide(state)
	if err != nil || len(events) == 0 {
		return state, err
	}
	if err := store.Append(ctx, stream, version, metadata, events...); err != nil {
		return none, err
	}
	for _, event := range events {
		P(&state).Apply(event)
	}
	return state, nil
}
