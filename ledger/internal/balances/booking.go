package balances

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirlog/weir/ledger/internal/horizon"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/contract"
)

const (
	endAge    = time.Second // of the log's end, for who only shows the lag
	endWithin = time.Second // the brokers answer, or these do without
)

// A Booking is how far the log is booked.
type Booking struct {
	Verified contract.Positions // the ranges before them are checked
	Known    bool               // false: the brokers did not answer, and what follows is not known
	Behind   int64              // records that are in the log, and not booked
	Lag      time.Duration      // the first of these was accepted no longer ago
}

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

// readEnd asks the brokers where the log ends. Whoever asked first may
// have gone: others wait for the answer.
func (s *Service) readEnd(within time.Duration) func(context.Context) (horizon.End, error) {
	return func(ctx context.Context) (horizon.End, error) {
		if s.End == nil {
			return horizon.End{}, errors.New("there are no brokers")
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
		defer cancel()
		return s.End(ctx)
	}
}

// bookingOf is how far the log is booked. end is where it ended before the
// snapshot; known is false where nobody knows.
func (s *Service) bookingOf(standing postgres.Standing, end horizon.End, known bool) *Booking {
	b := &Booking{Verified: standing.Verified, Known: known}
	if !known {
		return b
	}
	now := s.Reads.Clock()
	for partition, next := range end.Next {
		more := next - standing.Applied[partition]
		if more <= 0 {
			continue
		}
		accepted, found := standing.Accepted[partition]
		b.Behind, b.Known = b.Behind+more, b.Known && found
		b.Lag = max(b.Lag, now.Sub(accepted))
	}
	if !b.Known {
		b.Lag = 0 // nothing is booked of a partition
	}
	return b
}
