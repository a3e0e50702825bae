package plans

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/snapshot"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
)

// TestClocks advances the clocks of test organizations and charges their requests.
type TestClocks struct {
	Reads *snapshot.Reader
	Work  *unitofwork.Writer
	Owns  ledger.Owns
}

// A Clock is an organization's time.
type Clock struct {
	Organization string
	Test         bool
	At           time.Time
}

func clockOf(o ledger.Organization, now time.Time) Clock { return Clock{o.ID, o.IsTest(), o.Now(now)} }

// Clock reads an organization's time.
func (s *TestClocks) Clock(ctx context.Context, organization string) (found Clock, err error) {
	err = s.Reads.Read(ctx, organization, func(tx pgx.Tx, organization pg.Organization) error {
		o, now, err := s.Reads.OrganizationNow(ctx, tx, organization)
		found = clockOf(o, now)
		return err
	})
	return found, err
}

// Advance sets the clock of a test and does everything due by then;
// zero keeps the time. An organization without charges becomes a test.
func (s *TestClocks) Advance(ctx context.Context, organization string, request unitofwork.Request, to time.Time) (Clock, error) {
	choose := func(tx pgx.Tx, books *ledger.Books, _ time.Time) ([]ledger.Decision, error) {
		now, err := s.Work.Time(ctx, tx)
		if err != nil {
			return nil, err
		}
		return books.AdvanceClock(to, books.Organization.RecordedAt(now))
	}
	return unitofwork.Decide(ctx, s.Work, organization, request, to, choose, func(_ pgx.Tx, books *ledger.Books, at time.Time) (Clock, error) {
		return clockOf(books.Organization, at), nil
	})
}

// A TestUse is the outcome of a request of a test.
type TestUse struct {
	ledger.DryRun
	ID string
	At time.Time
}

// Use charges or refuses a request of a test. It ignores the
// id of spec.
func (s *TestClocks) Use(ctx context.Context, organization string, request unitofwork.Request, spec ledger.TestUse) (TestUse, error) {
	input := spec
	spec.ID = "rhs_" + s.Work.IDs()
	choose := func(_ pgx.Tx, books *ledger.Books, _ time.Time) ([]ledger.Decision, error) {
		if err := s.Owns.Check(organization, spec.Project); err != nil {
			return nil, err
		}
		return spec.DecideFor(books.Organization)
	}
	return unitofwork.Decide(ctx, s.Work, organization, request, input, choose, func(tx pgx.Tx, books *ledger.Books, at time.Time) (TestUse, error) {
		made := books.TestUses[len(books.TestUses)-1]
		return TestUse{made.DryRun, spec.ID, at}, explain(ctx, tx, at, made)
	})
}

// explain stores a refusal for later queries.
func explain(ctx context.Context, tx pgx.Tx, at time.Time, r ledger.TestUseOutcome) error {
	refusal := r.Refusal
	switch r.Rule {
	case "":
		return nil
	case ledger.RuleSuspended:
		refusal.Reason = contract.ReasonSuspended
	case ledger.RuleBudget:
		refusal.Reason = contract.ReasonProjectBudget
		if refusal.Spender.Key != "" {
			refusal.Reason = contract.ReasonKeyBudget
		}
	}
	if err := postgres.SaveRefusals(ctx, tx, at, []ledger.Refusal{refusal}); err != nil {
		return fmt.Errorf("cannot save a refusal: %w", err)
	}
	return nil
}
