package rehearsals

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

// A Use is the outcome of a rehearsed request.
type Use struct {
	ledger.Trial
	ID string
	At time.Time
}

// Use charges or refuses a rehearsed request of a test. It ignores the
// id of spec.
func (s *Service) Use(ctx context.Context, organization string, request unitofwork.Request, spec ledger.Rehearsed) (Use, error) {
	input := spec
	spec.ID = "rhs_" + s.Work.IDs()
	choose := func(_ pgx.Tx, books *ledger.Books, _ time.Time) ([]ledger.Decision, error) {
		if err := s.Owns.Check(organization, spec.Project); err != nil {
			return nil, err
		}
		return books.Rehearse(spec)
	}
	return unitofwork.Decide(ctx, s.Work, organization, request, input, choose, func(tx pgx.Tx, books *ledger.Books, at time.Time) (Use, error) {
		made := books.Rehearsals[len(books.Rehearsals)-1]
		return Use{made.Trial, spec.ID, at}, explain(ctx, tx, at, made)
	})
}

// explain stores a refusal for later queries.
func explain(ctx context.Context, tx pgx.Tx, at time.Time, r ledger.Rehearsal) error {
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
