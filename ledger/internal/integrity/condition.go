package integrity

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
)

// A Condition is the progress of the running checks and the chains, and
// the violations in the latest of both.
type Condition struct {
	Verified   contract.Positions // through which offsets ranges are checked
	Unchecked  time.Time          // booking of the oldest unchecked range; zero: none
	Sealed     time.Time          // end of the last sealed hour; zero: none
	Overdue    bool               // an hour that should be sealed is not
	Violations []ledger.Violation
}

// Examine takes a few queries, however large the books are. An hour
// that ended before due must be sealed. Nothing before since is compared.
func Examine(ctx context.Context, pool *pgxpool.Pool, log Log, due, since time.Time) (found Condition, err error) {
	var last []ledger.Range
	err = pg.Snapshot(ctx, pool, func(tx pgx.Tx) error {
		if err := postgres.HoldDays(ctx, tx); err != nil {
			return err
		}
		if err := pg.AsSystem(ctx, tx); err != nil {
			return err
		}
		if err := found.readProgress(ctx, tx, due); err != nil {
			return err
		}
		if last, err = postgres.LastRanges(ctx, tx, since); err != nil {
			return err
		}
		return found.compare(ctx, tx, last)
	})
	if err != nil {
		return found, fmt.Errorf("cannot examine the books: %w", err)
	}
	for _, ranges := range byPartition(last) {
		violations, err := log.Check(ctx, ranges)
		if err != nil {
			return found, fmt.Errorf("cannot compare the latest ranges with the log: %w", err)
		}
		found.Violations = append(found.Violations, violations...)
	}
	return found, nil
}

func (c *Condition) readProgress(ctx context.Context, tx pgx.Tx, due time.Time) (err error) {
	if c.Verified, c.Unchecked, err = postgres.CheckedRanges(ctx, tx); err != nil {
		return err
	}
	hour, sealed, err := postgres.LastSealed(ctx, tx)
	if err != nil {
		return err
	}
	if sealed {
		c.Sealed = hour.Add(time.Hour)
	}
	c.Overdue, err = postgres.HasUnsealed(ctx, tx, due)
	return err
}

func (c *Condition) compare(ctx context.Context, tx pgx.Tx, last []ledger.Range) error {
	for _, ranges := range byBooking(last) {
		found, err := postgres.CheckRanges(ctx, tx, ranges)
		if err != nil {
			return err
		}
		c.Violations = append(c.Violations, found...)
	}
	ofRoot, err := postgres.CheckLastRoot(ctx, tx)
	c.Violations = append(c.Violations, ofRoot...)
	return err
}

// byBooking groups ranges by transaction: between the last of a silent
// partition and of a busy one may lie months of transfers.
func byBooking(ranges []ledger.Range) map[int64][]ledger.Range {
	split := map[int64][]ledger.Range{}
	for _, r := range ranges {
		split[r.Booked.UnixMicro()] = append(split[r.Booked.UnixMicro()], r)
	}
	return split
}
