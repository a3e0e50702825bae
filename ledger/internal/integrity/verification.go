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

// chargesVerified is for how long back a verification makes the links of a
// chain again from the charges: ledger-verify does so for all.
const chargesVerified = 24 * time.Hour

// A Verification is what a look at the books of one organization has found.
type Verification struct {
	At         time.Time
	Violations []ledger.Violation
	Head       ledger.Link        // of its chain; its sequence is zero where there is none yet
	Sealed     time.Time          // through which instant chains are sealed; zero: none is
	Verified   contract.Positions // through which offsets the ranges of the log are checked
}

// Verify checks an organization's books: those of the running period and the
// one before, its usage since then, and its chain.
func (s *Service) Verify(ctx context.Context, organization string) (found Verification, err error) {
	found.At = s.Reads.Clock().UTC()
	leave, err := s.Reads.Turns.Enter(ctx, organization)
	if err != nil {
		return found, err
	}
	defer leave()
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
		if err := found.check(ctx, tx, o); err != nil {
			return fmt.Errorf("cannot verify the books of organization %q: %w", organization, err)
		}
		return found.reach(ctx, tx, pg.Organization(organization))
	})
	return found, err
}

func (v *Verification) check(ctx context.Context, tx pgx.Tx, o ledger.Organization) error {
	running := o.PeriodAt(v.At)
	since := o.PeriodAt(running.Start.Add(-1)).Start
	books, err := postgres.CheckBooks(ctx, tx, o.ID, since)
	if err != nil {
		return err
	}
	usage, err := postgres.CheckHours(ctx, tx, o.ID, running.Start)
	if err != nil {
		return err
	}
	chain, err := postgres.CheckChain(ctx, tx, o.ID, v.At.Add(-chargesVerified))
	v.Violations = slices.Concat(books, usage, chain)
	return err
}

// reach notes how far chains and checks go.
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
