package bus

import (
	"context"
	"errors"
	"hash/maphash"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/lifecycle"
)

// replayedEntries are the next of the log, and when they were accepted.
type replayedEntries struct {
	n           int
	shares      []replayShare
	from, until time.Time
}

// near reports whether what was accepted at an instant may be booked with
// the others.
func (r *replayedEntries) near(accepted time.Time) bool {
	return r.n == 0 || accepted.Sub(r.from) <= mostBookedApart
}

// A replayShare is the part of some entries that is about some organizations.
// These have nothing in common, so shares are booked side by side, each in a
// transaction of its own.
type replayShare struct {
	entries entries
	ranges  []ledger.Range // of these
	passed  int
}

var shareSeed = maphash.MakeSeed()

// reach notes when the next was accepted.
func (r *replayedEntries) reach(accepted time.Time) {
	if r.until = accepted; r.n == 0 {
		r.from = accepted
	}
}

func (r *replayedEntries) add(e entry) {
	share := &r.shares[maphash.String(shareSeed, e.logs.Organization)%uint64(len(r.shares))]
	share.entries.add(e)
	r.n++
}

// book books shares as if by one transaction: what is not made to the end is
// dropped as a whole.
func (r *Replay) book(ctx context.Context, shares []replayShare) error {
	work := make([]func(context.Context) error, len(shares))
	for i := range shares {
		work[i] = func(ctx context.Context) error { return r.bookShare(ctx, &shares[i]) }
	}
	if err := errors.Join(lifecycle.Run(ctx, work...), ctx.Err()); err != nil {
		return err
	}
	var ranges []ledger.Range
	for _, share := range shares {
		ranges = ledger.JoinRanges(ranges, share.ranges)
		r.Passed += share.passed
	}
	return postgres.InAsyncTx(ctx, r.Pool, func(tx pgx.Tx) error { return r.Consumer.Services.Booking.NoteApplied(ctx, tx, ranges) })
}

func (r *Replay) bookShare(ctx context.Context, share *replayShare) (err error) {
	if len(share.entries.logs) == 0 {
		return nil
	}
	share.passed, err = applied(ctx, r.Pool, share.entries.drop, func(tx pgx.Tx) error {
		booked, err := r.Consumer.book(ctx, tx, share.entries)
		if err != nil {
			return err
		}
		share.ranges = booked.ranges
		return SaveEvents(ctx, tx, booked.events)
	})
	return err
}
