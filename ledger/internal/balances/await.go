package balances

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/snapshot"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
)

// ErrNotBooked means that the log was not booked far enough in time.
var ErrNotBooked = errors.New("the log is not booked so far yet")

// BeyondLog means that a client waits for what the log does not have.
type BeyondLog struct {
	Partition int
	Next, End int64 // what was asked for, and where the partition's log ends
}

func (b BeyondLog) Error() string {
	return fmt.Sprintf("min_offset is %d:%d, but partition %d of %s ends at %d.", b.Partition, b.Next, b.Partition, contract.TopicLogs, b.End)
}

const (
	waitTimeout     = 5 * time.Second       // longest wait
	positionsMaxAge = 20 * time.Millisecond // of positions shared by waiters
)

// A Waiter waits until the log is booked.
type Waiter struct {
	Reads *snapshot.Reader
	End   snapshot.LogEnd // nil: the end of the log is unknown

	ends   latest[snapshot.End]
	booked latest[contract.Positions]
}

// An Awaited is what has to be booked before a client reads.
type Awaited struct {
	All     bool               // everything acknowledged before the call
	Through contract.Positions // of the log; empty: none
	Batch   uuid.UUID          // of the organization; uuid.Nil: none
}

// Await waits until everything awaited is booked, at most five seconds.
// It returns whether its batch is charged; nil: it has none. A batch
// waits for no other batches. It is not charged if everything
// acknowledged before the call is booked without it.
func (w *Waiter) Await(ctx context.Context, organization string, wanted Awaited) (charged *bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	if wanted.All {
		err = w.awaitAll(ctx)
	}
	if err == nil && len(wanted.Through) > 0 {
		err = w.awaitGiven(ctx, wanted.Through)
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

// settleTimeout limits the wait for bookings before a decision.
const settleTimeout = 2 * time.Second

// Settle waits until everything acknowledged before the call is booked,
// where that takes no longer than settleTimeout. Booked after a decision
// about an allowance, it could find that used up by what the decision has
// let in since, and would be overshoot. A decision is made without
// brokers, too.
func (w *Waiter) Settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	_ = w.awaitAll(ctx)
}

func (w *Waiter) awaitAll(ctx context.Context) error {
	end, err := w.endNow(ctx)
	if err != nil {
		return err
	}
	return w.awaitPositions(ctx, end)
}

// awaitGiven waits for positions that a client gave. It fails at once
// where the log has not come so far.
func (w *Waiter) awaitGiven(ctx context.Context, through contract.Positions) error {
	booked, err := w.recentPositions(ctx)
	if err != nil || reaches(booked, through) {
		return err
	}
	if end, err := w.endNow(ctx); err == nil { // else nobody knows
		for partition, next := range through {
			if next > end[partition] {
				return BeyondLog{partition, next, end[partition]}
			}
		}
	}
	return w.awaitPositions(ctx, through)
}

func (w *Waiter) awaitPositions(ctx context.Context, through contract.Positions) error {
	return w.follow(ctx, func(booked contract.Positions) (bool, error) { return reaches(booked, through), nil })
}

// endNow returns the log's end, as of now or later.
func (w *Waiter) endNow(ctx context.Context) (contract.Positions, error) {
	end, err := w.ends.since(ctx, w.Reads.Clock(), w.Reads.Clock, w.readEnd(waitTimeout))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotBooked, err)
	}
	return end.Next, nil
}

// recentEnd returns the log's recent end.
func (w *Waiter) recentEnd(ctx context.Context) (snapshot.End, error) {
	return w.ends.recent(ctx, endMaxAge, w.Reads.Clock, w.readEnd(endTimeout))
}

// readEnd reads the log's end from the brokers. It outlives the first
// caller, as others share the result.
func (w *Waiter) readEnd(within time.Duration) func(context.Context) (snapshot.End, error) {
	return func(ctx context.Context) (snapshot.End, error) {
		if w.End == nil {
			return snapshot.End{}, errors.New("there are no brokers")
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
		defer cancel()
		return w.End(ctx)
	}
}

// follow calls look with the booked positions, at once and whenever
// they grow, until it has enough.
func (w *Waiter) follow(ctx context.Context, look func(booked contract.Positions) (enough bool, err error)) error {
	ticker := time.NewTicker(positionsMaxAge)
	defer ticker.Stop()
	var seen contract.Positions
	for {
		booked, err := w.recentPositions(ctx)
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

// recentPositions returns the positions that are booked, shared by all who wait.
func (w *Waiter) recentPositions(ctx context.Context) (contract.Positions, error) {
	return w.booked.since(ctx, w.Reads.Clock().Add(-positionsMaxAge/2), w.Reads.Clock, w.readPositions)
}

func (w *Waiter) readPositions(ctx context.Context) (booked contract.Positions, err error) {
	err = pgx.BeginTxFunc(ctx, w.Reads.Pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		booked, err = postgres.Positions(ctx, tx)
		return err
	})
	return booked, err
}

// reaches reports whether booked is at or past through.
func reaches(booked, through contract.Positions) bool {
	for partition, next := range through {
		if booked[partition] < next {
			return false
		}
	}
	return true
}

// awaitBatch returns once a batch is charged, or once everything
// acknowledged before the call is booked without it.
func (w *Waiter) awaitBatch(ctx context.Context, organization string, batch uuid.UUID) (charged bool, err error) {
	if charged, err = w.isCharged(ctx, organization, batch); err != nil || charged {
		return charged, err
	}
	end, err := w.endNow(ctx)
	if err != nil {
		return false, err
	}
	err = w.follow(ctx, func(booked contract.Positions) (bool, error) {
		charged, err = w.isCharged(ctx, organization, batch)
		return charged || reaches(booked, end), err
	})
	return charged, err
}

func (w *Waiter) isCharged(ctx context.Context, organization string, batch uuid.UUID) (charged bool, err error) {
	err = w.Reads.Read(ctx, organization, func(tx pgx.Tx, id pg.Organization) error {
		charged, err = postgres.IsCharged(ctx, tx, id, batch)
		return err
	})
	return charged, err
}
