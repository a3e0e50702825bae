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
	"github.com/weirlog/weir/shared/contract"
)

// ErrNotBooked means that what somebody waited for is not booked yet.
var ErrNotBooked = errors.New("the log is not booked so far yet")

const (
	bookedWithin = 5 * time.Second       // somebody waits at most
	bookedAge    = 20 * time.Millisecond // of what those who wait look at together
)

// An Awaited is what a client wants to be booked before it reads.
type Awaited struct {
	All     bool               // that was acknowledged before the call
	Through contract.Positions // of the log; empty: none
	Batch   uuid.UUID          // of the organization; uuid.Nil: none
}

// Await waits for all of w, five seconds at most, and returns whether its batch
// is charged; nil where it names none. A batch is waited for without what
// others have sent. One that is not charged is false, once all is booked that
// was acknowledged before the call.
func (s *Service) Await(ctx context.Context, organization string, w Awaited) (charged *bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, bookedWithin)
	defer cancel()
	if w.All {
		err = s.awaitAll(ctx)
	}
	if err == nil && len(w.Through) > 0 {
		err = s.awaitPositions(ctx, w.Through)
	}
	if err == nil && w.Batch != uuid.Nil {
		charged = new(bool)
		*charged, err = s.awaitBatch(ctx, organization, w.Batch)
	}
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", ErrNotBooked, err)
	}
	return charged, err
}

func (s *Service) awaitAll(ctx context.Context) error {
	end, err := s.endNow(ctx)
	if err != nil {
		return err
	}
	return s.awaitPositions(ctx, end)
}

func (s *Service) awaitPositions(ctx context.Context, through contract.Positions) error {
	return s.follow(ctx, func(booked contract.Positions) (bool, error) { return reaches(booked, through), nil })
}

// endNow is where the log ends, as of now or later.
func (s *Service) endNow(ctx context.Context) (contract.Positions, error) {
	end, err := s.ends.since(ctx, s.Reads.Clock(), s.Reads.Clock, s.readEnd(bookedWithin))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotBooked, err)
	}
	return end.Next, nil
}

// follow calls look with how far the log is booked, at first and whenever more
// is, until it has seen enough.
func (s *Service) follow(ctx context.Context, look func(booked contract.Positions) (enough bool, err error)) error {
	ticker := time.NewTicker(bookedAge)
	defer ticker.Stop()
	var seen contract.Positions
	for {
		booked, err := s.booked.since(ctx, s.Reads.Clock().Add(-bookedAge/2), s.Reads.Clock, s.readPositions)
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

func (s *Service) readPositions(ctx context.Context) (booked contract.Positions, err error) {
	err = pgx.BeginTxFunc(ctx, s.Reads.Pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
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
