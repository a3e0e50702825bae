package balances

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// A latest caches a value that is used more often than read. One caller
// at a time reads it.
type latest[T any] struct {
	reading sync.Mutex
	last    atomic.Pointer[dated[T]]
}

// A dated value was read at an instant or later.
type dated[T any] struct {
	at    time.Time
	value T
	err   error
}

// since returns a value read at an instant or later. It waits for a running read.
func (l *latest[T]) since(ctx context.Context, instant time.Time, clock func() time.Time, read func(context.Context) (T, error)) (T, error) {
	l.reading.Lock()
	defer l.reading.Unlock()
	if last := l.last.Load(); last != nil && last.err == nil && !last.at.Before(instant) {
		return last.value, nil
	}
	return l.read(ctx, clock(), read)
}

// recent is since without a wait for other callers or for a read that
// has just failed. Under steady use none waits: a value up to twice as
// old is returned while a new one is read.
func (l *latest[T]) recent(ctx context.Context, age time.Duration, clock func() time.Time, read func(context.Context) (T, error)) (value T, err error) {
	now, last := clock(), l.last.Load()
	if last != nil && now.Sub(last.at) <= age {
		return last.value, last.err
	}
	if !l.reading.TryLock() {
		if last == nil {
			return value, errReading
		}
		return last.value, last.err
	}
	if last != nil && last.err == nil && now.Sub(last.at) < 2*age {
		go l.refresh(context.WithoutCancel(ctx), now, read)
		return last.value, nil
	}
	defer l.reading.Unlock()
	return l.read(ctx, now, read)
}

// refresh reads in the background. It holds the lock.
func (l *latest[T]) refresh(ctx context.Context, at time.Time, read func(context.Context) (T, error)) {
	defer l.reading.Unlock()
	_, _ = l.read(ctx, at, read) // the next caller gets the error
}

var errReading = errors.New("it is being read for the first time")

func (l *latest[T]) read(ctx context.Context, at time.Time, read func(context.Context) (T, error)) (T, error) {
	value, err := read(ctx)
	l.last.Store(&dated[T]{at, value, err})
	return value, err
}
