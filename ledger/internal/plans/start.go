package plans

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
)

// HoldBooks locks the books of organizations that begin and of others, if these are there, before any is changed: one after the other would not be in the
// order in which others lock them.
func (s *Service) HoldBooks(ctx context.Context, tx pgx.Tx, booked time.Time, beginning, others []string) error {
	if len(beginning)+len(others) == 0 {
		return nil
	}
	if err := postgres.AddMissing(ctx, tx, booked, beginning); err != nil {
		return fmt.Errorf("cannot add organizations: %w", err)
	}
	if _, err := postgres.LockKnown(ctx, tx, slices.Concat(beginning, others)); err != nil {
		return fmt.Errorf("cannot lock the books: %w", err)
	}
	return nil
}

// StartPlan gives an organization its first plan and returns the events: none where it has a plan.
func (s *Service) StartPlan(ctx context.Context, tx pgx.Tx, booked time.Time, organization string, plan ledger.Plan,
	cause ledger.Cause) ([]ledger.Event, error) {
	known, err := postgres.LockOrganizations(ctx, tx, booked, []string{organization})
	if err != nil {
		return nil, fmt.Errorf("cannot lock the books of organization %q: %w", organization, err)
	}
	all, err := postgres.LoadAllBooks(ctx, tx, organization)
	if err != nil {
		return nil, fmt.Errorf("cannot open the books of organization %q: %w", organization, err)
	}
	books := ledger.OpenBooks(known[organization], s.Work.Tiers, nil, all...)
	if err := books.StartPlan(plan, cause); err != nil || len(books.Transfers) == 0 {
		return nil, err
	}
	if err := unitofwork.SaveDecided(ctx, tx, booked, map[string]*ledger.Books{organization: books}); err != nil {
		return nil, fmt.Errorf("organization %q: %w", organization, err)
	}
	return books.Events, nil
}
