package balances

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger/internal/horizon"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/snapshot"
	"github.com/weirlog/weir/shared/contract"
)

// ErrNotBooked means that what somebody waited for is not booked yet.
var ErrNotBooked = errors.New("the log is not booked so far yet")

const (
	bookedWithin = 5 * time.Second       // somebody waits at most
	bookedAge    = 20 * time.Millisecond // of what those who wait look at together
)

// A Waiter waits until the log is booked.
type Waiter struct {
	Reads *snapshot.Reader
	End   horizon.LogEnd // nil: nobody knows where the log ends

	ends   latest[horizon.End]
	booked latest[contract.Positions]
}

// An Awaited is what a client wants to be booked before it reads.
type Awaited struct {
	All     bool               // that was acknowledged before the call
	Through contract.Positions // of the log; empty: none
	Batch   uuid.UUID          // of the organization; uuid.Nil: none
}

// Await waits for all that is wanted, five seconds at most, and returns whether its batch
// is charged; nil where it names none. A batch is waited for without what
// others have sent. One that is not charged is false, once all is booked that
// was acknowledged before the call.
func (w *Waiter) Await(ctx context.Context, organization string, wanted Awaited) (charged *bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, bookedWithin)
	defer cancel()
	if wanted.All {
		err = w.awaitAll(ctx)
	}
	if err == nil && len(wanted.Through) > 0 {
		err = w.awaitPositions(ctx, wanted.Through)
	}
	if err == nil && wanted.Batch != uuid.Nil {
		charged = new(bool)
		*charged, err = w.awaitBatch(ctx, organization, wanted.Batch)
	}
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", ErrNotBooked, err)
	}
	return charged, err
}

func (w *Waiter) awaitAll(ctx context.Context) error {
	end, err := w.endNow(ctx)
	if err != nil {
		return err
	}
	return w.awaitPositions(ctx, end)
}

func (w *Waiter) awaitPositions(ctx context.Context, through contract.Positions) error {
	return w.follow(ctx, func(booked contract.Positions) (bool, error) { return reaches(booked, through), nil })
}

// endNow is where the log ends, as of now or later.
func (w *Waiter) endNow(ctx context.Context) (contract.Positions, error) {
	end, err := w.ends.since(ctx, w.Reads.Clock(), w.Reads.Clock, w.readEnd(bookedWithin))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotBooked, err)
	}
	return end.Next, nil
}

// recentEnd is where the log ended lately.
func (w *Waiter) recentEnd(ctx context.Context) (horizon.End, error) {
	return w.ends.recent(ctx, endAge, w.Reads.Clock, w.readEnd(endWithin))
}

// readEnd asks the brokers where the log ends. Whoever asked first may
// have gone: others wait for the answer.
func (w *Waiter) readEnd(within time.Duration) func(context.Context) (horizon.End, error) {
	return func(ctx context.Context) (horizon.End, error) {
		if w.End == nil {
			return horizon.End{}, errors.New("there are no brokers")
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
		defer cancel()
		return w.End(ctx)
	}
}

// follow calls look with how far the log is booked, at first and whenever more
// is, until it has seen enough.
func (w *Waiter) follow(ctx context.Context, look func(booked contract.Positions) (enough bool, err error)) error {
	ticker := time.NewTicker(bookedAge)
	defer ticker.Stop()
	var seen contract.Positions
	for {
		booked, err := w.booked.since(ctx, w.Reads.Clock().Add(-bookedAge/2), w.Reads.Clock, w.readPositions)
		enough := false
		if err == nil && (seen == nil || !maps.Equal(seen, booked)) {
			enough, err = look(booked)
			seen = booked
		}
		if err != nil || enough {
			return err
		}
		select {
		case <-ctx.Done():
			return ErrNotBooked
		case <-ticker.C:
		}
	}
}

func (w *Waiter) readPositions(ctx context.Context) (booked contract.Positions, err error) {
	err = pgx.BeginTxFunc(ctx, w.Reads.Pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		booked, err = postgres.Positions(ctx, tx)
		return err
	})
	return booked, err
}

// reaches reports whether positions are at others or behind them.
func reaches(booked, through contract.Positions) bool {
	for partition, next := range through {
		if booked[partition] < next {
			return false
		}
	}
	return true
}
