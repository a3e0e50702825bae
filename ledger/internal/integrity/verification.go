package integrity

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/snapshot"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
)

// chargesVerified is how far back a verification compares links with
// charges; ledger-verify compares all.
const chargesVerified = 24 * time.Hour

// A Verification is the result of checking one organization's books.
type Verification struct {
	At         time.Time
	Violations []ledger.Violation
	Head       ledger.Link        // of its chain; sequence 0: none yet
	Sealed     time.Time          // end of the last sealed hour; zero: none
	Verified   contract.Positions // through which offsets the ranges of the log are checked
}

// Verify checks an organization's books: the running period and the one
// before, usage and grants since then, decisions,
// budgets, statements and the chains.
func (s *Service) Verify(ctx context.Context, organization string) (found Verification, err error) {
	found.At = s.Reads.Clock().UTC()
	release, err := s.Reads.Limiter.Acquire(ctx, organization)
	if err != nil {
		return found, err
	}
	defer release()
	err = pg.Snapshot(ctx, s.Reads.Pool, func(tx pgx.Tx) error {
		if err := postgres.HoldDays(ctx, tx); err != nil {
			return err
		}
		if err := pg.AsOrganization(ctx, tx, pg.Organization(organization)); err != nil {
			return snapshot.NoOrganization(err)
		}
		o, err := snapshot.OrganizationAt(ctx, tx, pg.Organization(organization), found.At)
		if err != nil {
			return err
		}
		if err := found.check(ctx, tx, o, s.Kept.BooksSince(found.At)); err != nil {
			return fmt.Errorf("cannot verify the books of organization %q: %w", organization, err)
		}
		return found.reach(ctx, tx, pg.Organization(organization))
	})
	return found, err
}

func (v *Verification) check(ctx context.Context, tx pgx.Tx, o ledger.Organization, kept time.Time) error {
	running := o.PeriodAt(v.At)
	before := o.PeriodAt(running.Start.Add(-1)).Start
	for _, check := range []struct {
		since time.Time
		of    func(context.Context, pgx.Tx, string, time.Time) ([]ledger.Violation, error)
	}{
		{before, postgres.CheckBooks},
		{before, postgres.CheckCharges},
		{running.Start, postgres.CheckHours},
		{before, postgres.CheckGrants},
		{v.At.Add(-chargesVerified), postgres.CheckChain},
		{kept, postgres.CheckDecisions},
		{kept, postgres.CheckStatements},
		{v.At, postgres.CheckRefusals},
		{v.At, postgres.CheckBudgets},
	} {
		found, err := check.of(ctx, tx, o.ID, check.since)
		if err != nil {
			return err
		}
		v.Violations = append(v.Violations, found...)
	}
	standing, err := postgres.CheckStanding(ctx, tx, o.ID, kept)
	if err != nil {
		return err
	}
	grants, err := postgres.CheckGrantDecisions(ctx, tx, o.ID, kept, v.At)
	if err != nil {
		return err
	}
	v.Violations = slices.Concat(v.Violations, standing, grants)
	return err
}

// reach reads the progress of chains and checks.
func (v *Verification) reach(ctx context.Context, tx pgx.Tx, organization pg.Organization) (err error) {
	if v.Head, err = postgres.Head(ctx, tx, organization); err != nil {
		return err
	}
	last, sealed, err := postgres.LastSealed(ctx, tx)
	if err != nil {
		return err
	}
	if sealed {
		v.Sealed = last.Add(time.Hour)
	}
	v.Verified, _, err = postgres.CheckedRanges(ctx, tx)
	return err
}

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
	err = ofAllDays(ctx, pool, func(tx pgx.Tx) error {
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

// sweepEvery is how often every organization is compared with what was
// decided about it, so that what was changed is found within a minute.
const sweepEvery = 30 * time.Second

// sweep compares all organizations with their last decisions and
// statements, some in each snapshot. It does so by itself in each replica.
func (c *Checker) sweep(ctx context.Context) error {
	now := c.Clock()
	if now.Sub(c.swept) < sweepEvery && !now.Before(c.swept) {
		return nil
	}
	for after := ""; ; {
		found, last, err := c.sweepPage(ctx, after, now)
		if err != nil {
			return fmt.Errorf("cannot compare organizations with their decisions: %w", err)
		}
		c.note(0, 0, found)
		if after = last; after == "" {
			c.swept = now
			c.metrics.swept(now)
			return nil
		}
	}
}

func (c *Checker) sweepPage(ctx context.Context, after string, now time.Time) (found []ledger.Violation, last string, err error) {
	err = pg.SnapshotAsSystem(ctx, c.Pool, func(tx pgx.Tx) error {
		found, last, err = postgres.CheckStandings(ctx, tx, after, c.Kept.BooksSince(now), now)
		return err
	})
	return found, last, err
}
