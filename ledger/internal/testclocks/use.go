package testclocks

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
	"github.com/weirlog/weir/shared/contract"
)

// A Use is the outcome of a request of a test.
type Use struct {
	ledger.DryRun
	ID string
	At time.Time
}

// Use charges or refuses a request of a test. It ignores the
// id of spec.
func (s *Service) Use(ctx context.Context, organization string, request unitofwork.Request, spec ledger.TestUse) (Use, error) {
	input := spec
	spec.ID = "rhs_" + s.Work.IDs()
	choose := func(_ pgx.Tx, books *ledger.Books, _ time.Time) ([]ledger.Decision, error) {
		if err := s.Owns.Check(organization, spec.Project); err != nil {
			return nil, err
		}
		return books.UseTest(spec)
	}
	return unitofwork.Decide(ctx, s.Work, organization, request, input, choose, func(tx pgx.Tx, books *ledger.Books, at time.Time) (Use, error) {
		made := books.TestUses[len(books.TestUses)-1]
		return Use{made.DryRun, spec.ID, at}, explain(ctx, tx, at, made)
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
