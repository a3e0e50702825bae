package horizon

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

// A LogEnd asks the brokers where weir.logs.v1 ends.
type LogEnd func(ctx context.Context) (End, error)

// An End is where the log ended at some instant.
type End struct {
	Topic [16]byte // its id: positions in another one say nothing
	Next  contract.Positions
}

// Settling is how long what was accepted before something is due has
// to come and be booked: then it is done.
const Settling = time.Minute

// A Horizon is the instant through which all that was in the log
// is booked, by whichever replica.
type Horizon struct {
	through time.Time // zero: not known
	marked  time.Time // the instant that is waited for; zero: none. end was read then or later
	end     End
}

// Move marks the log's end, unless a mark is waited for, and returns the
// instant through which everything is booked; zero: none is known.
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

// markAge is how long a mark is waited for: that of a log which
// was made anew is never reached.
const markAge = time.Hour

// mark notes where the log ends, unless a mark is waited for: under load, one
// that moved with the log would never be reached.
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

// reach moves the horizon where the positions have reached the mark.
func (h *Horizon) reach(booked contract.Positions) {
	for partition, next := range h.end.Next {
		if booked[partition] < next {
			return
		}
	}
	h.through, h.marked = h.marked, time.Time{}
}
