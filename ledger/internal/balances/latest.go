package balances

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// A latest is the last value of something that is asked for more
// often than read. One at a time reads it.
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

// since returns a value that was read at an instant or later. It
// waits for whoever reads it now.
func (l *latest[T]) since(ctx context.Context, instant time.Time, clock func() time.Time, read func(context.Context) (T, error)) (T, error) {
	l.reading.Lock()
	defer l.reading.Unlock()
	if last := l.last.Load(); last != nil && last.err == nil && !last.at.Before(instant) {
		return last.value, nil
	}
	return l.read(ctx, clock(), read)
}

// recent is since for those who rather do without than wait for
// others, or for what has just failed. While it is asked for again and
// again nobody waits: what is up to twice as old as it may be is given
// once more, and read behind whoever asked.
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
		go l.readBehind(context.WithoutCancel(ctx), now, read)
		return last.value, nil
	}
	defer l.reading.Unlock()
	return l.read(ctx, now, read)
}

// readBehind is read for nobody in particular. The lock is its own.
func (l *latest[T]) readBehind(ctx context.Context, at time.Time, read func(context.Context) (T, error)) {
	defer l.reading.Unlock()
	_, _ = l.read(ctx, at, read) // who asks next finds the error
}

var errReading = errors.New("it is being read for the first time")

func (l *latest[T]) read(ctx context.Context, at time.Time, read func(context.Context) (T, error)) (T, error) {
	value, err := read(ctx)
	l.last.Store(&dated[T]{at, value, err})
	return value, err
}
