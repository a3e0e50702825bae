package snapshot

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
)

// A LogEnd reads the end of weir.logs.v1 from the brokers.
type LogEnd func(ctx context.Context) (End, error)

// An End is where the log ended at an instant.
type End struct {
	Topic [16]byte // its id: positions of another topic don't count
	Next  contract.Positions
}

// Settling is how long records accepted before a due time have to
// arrive and be booked.
const Settling = time.Minute

// A Horizon is the instant through which the log is booked, by all replicas.
type Horizon struct {
	through time.Time // zero: unknown
	marked  time.Time // time of the awaited mark, end was read then or later; zero: none
	end     End
}

// Move marks the log's end, unless it waits for a mark, and returns the
// instant through which everything is booked; zero: unknown.
func (h *Horizon) Move(ctx context.Context, pool *pgxpool.Pool, now time.Time, end LogEnd) (through time.Time, err error) {
	if err := h.mark(ctx, now, end); err != nil {
		return through, err
	}
	err = pg.InTxAsSystem(ctx, pool, func(tx pgx.Tx) error {
		next, err := postgres.BookedPositions(ctx, tx, h.end.Topic)
		h.reach(next)
		return err
	})
	return h.through, err
}

// markAge is how long it waits for a mark. That of a replaced log is
// never reached.
const markAge = time.Hour

// mark records the log's end, unless it waits for a mark: under load, a
// mark that moved with the log would never be reached.
func (h *Horizon) mark(ctx context.Context, now time.Time, end LogEnd) (err error) {
	if !h.marked.IsZero() && now.Sub(h.marked) < markAge {
		return nil
	}
	if h.end, err = end(ctx); err != nil {
		return fmt.Errorf("cannot read where the log ends: %w", err)
	}
	h.marked = now
	return nil
}

// reach moves the horizon once the positions have reached the mark.
func (h *Horizon) reach(booked contract.Positions) {
	for partition, next := range h.end.Next {
		if booked[partition] < next {
			return
		}
	}
	h.through, h.marked = h.marked, time.Time{}
}
