package integrity

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

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
	refusals, err := postgres.CheckRefusals(ctx, tx, o.ID, v.At)
	if err != nil {
		return err
	}
	budgets, err := postgres.CheckBudgets(ctx, tx, o.ID)
	v.Violations = slices.Concat(v.Violations, standing, grants, refusals, budgets)
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
