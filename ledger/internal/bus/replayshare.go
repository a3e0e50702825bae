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

// A replayBatch holds the next entries of the log and when they were accepted.
type replayBatch struct {
	n           int
	shares      []replayShare
	from, until time.Time
}

// fits reports whether an entry accepted at an instant may be booked
// with the others.
func (r *replayBatch) fits(accepted time.Time) bool {
	return r.n == 0 || accepted.Sub(r.from) <= maxBatchSpan
}

// A replayShare holds a batch's entries of some organizations. Shares
// have no organization in common, so each is booked in its own
// concurrent transaction.
type replayShare struct {
	entries entries
	ranges  []ledger.Range // of these
	skipped int
}

var shareSeed = maphash.MakeSeed()

// extend adds an acceptance to the batch's span.
func (r *replayBatch) extend(accepted time.Time) {
	if r.until = accepted; r.n == 0 {
		r.from = accepted
	}
}

func (r *replayBatch) add(e entry) {
	share := &r.shares[maphash.String(shareSeed, e.logs.Organization)%uint64(len(r.shares))]
	share.entries.add(e)
	r.n++
}

// book books shares as if in one transaction: an incomplete ledger is
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
		r.Skipped += share.skipped
	}
	return postgres.InAsyncTx(ctx, r.Pool, func(tx pgx.Tx) error { return r.Consumer.Services.Booking.NoteApplied(ctx, tx, ranges) })
}

func (r *Replay) bookShare(ctx context.Context, share *replayShare) (err error) {
	if len(share.entries.logs) == 0 {
		return nil
	}
	share.skipped, err = applySkipping(ctx, r.Pool, share.entries.drop, func(tx pgx.Tx) error {
		if r.recalls {
			return r.Consumer.recall(ctx, tx, share.entries)
		}
		booked, err := r.Consumer.book(ctx, tx, share.entries)
		if err != nil {
			return err
		}
		share.ranges = booked.ranges
		return SaveEvents(ctx, tx, booked.events)
	})
	return err
}
