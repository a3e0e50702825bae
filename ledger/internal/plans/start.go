package plans

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
)

// HoldBooks locks the books of organizations that begin and of others, if
// these are there, before any is changed: one after the other would not be
// in the order in which others lock them.
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

// A Start is an organization's first plan, and what it begins by.
type Start struct {
	Organization string
	Plan         ledger.Plan
	Cause        ledger.Cause
}

// A StartError is why one of several plans can't begin.
type StartError struct {
	At  int // which of them
	Err error
}

func (e *StartError) Error() string { return e.Err.Error() }

// Unwrap is for errors.Is.
func (e *StartError) Unwrap() error { return e.Err }

// StartPlans gives organizations their first plans and returns
// the events: none of one that has a plan.
func (s *Service) StartPlans(ctx context.Context, tx pgx.Tx, booked time.Time, starts []Start) ([]ledger.Event, error) {
	if len(starts) == 0 {
		return nil, nil
	}
	opened, err := s.openBeginning(ctx, tx, booked, starts)
	if err != nil {
		return nil, fmt.Errorf("cannot open the books of %d organizations: %w", len(starts), err)
	}
	for i, start := range starts {
		if err := opened[start.Organization].StartPlan(start.Plan, start.Cause); err != nil {
			return nil, &StartError{At: i, Err: err}
		}
	}
	maps.DeleteFunc(opened, func(_ string, books *ledger.Books) bool { return len(books.Transfers) == 0 })
	if err := unitofwork.SaveDecided(ctx, tx, booked, opened); err != nil {
		return nil, fmt.Errorf("cannot start %d plans: %w", len(opened), err)
	}
	return unitofwork.EventsOf(opened), nil
}

// openBeginning locks and opens the books of organizations that begin.
func (s *Service) openBeginning(ctx context.Context, tx pgx.Tx, booked time.Time, starts []Start) (map[string]*ledger.Books, error) {
	ids := make([]string, len(starts))
	for i, start := range starts {
		ids[i] = start.Organization
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	known, err := postgres.LockOrganizations(ctx, tx, booked, ids)
	if err != nil {
		return nil, err
	}
	all, err := postgres.LoadAllBooks(ctx, tx, ids...)
	if err != nil {
		return nil, err
	}
	opened := make(map[string]*ledger.Books, len(known))
	for id, organization := range known {
		opened[id] = s.Work.Rules.Open(organization, nil, all[id]...)
	}
	return opened, nil
}
