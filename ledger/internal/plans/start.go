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

// HoldBooks locks the books of created organizations and of existing
// others before any changes: one by one would break the lock order.
func (s *Service) HoldBooks(ctx context.Context, tx pgx.Tx, booked time.Time, created, others []string) error {
	if len(created)+len(others) == 0 {
		return nil
	}
	if err := postgres.AddMissing(ctx, tx, booked, created); err != nil {
		return fmt.Errorf("cannot add organizations: %w", err)
	}
	if _, err := postgres.LockKnown(ctx, tx, slices.Concat(created, others)); err != nil {
		return fmt.Errorf("cannot lock the books: %w", err)
	}
	return nil
}

// A Start is an organization's first plan.
type Start struct {
	Organization string
	Plan         ledger.Plan
}

// A StartError is why one of several plans can't start.
type StartError struct {
	At  int // its index
	Err error
}

func (e *StartError) Error() string { return e.Err.Error() }

// Unwrap is for errors.Is.
func (e *StartError) Unwrap() error { return e.Err }

// StartPlans sets organizations' first plans and returns the events.
// One that has a plan keeps it.
func (s *Service) StartPlans(ctx context.Context, tx pgx.Tx, booked time.Time, starts []Start) ([]ledger.Event, error) {
	if len(starts) == 0 {
		return nil, nil
	}
	opened, err := s.openCreated(ctx, tx, booked, starts)
	if err != nil {
		return nil, fmt.Errorf("cannot open the books of %d organizations: %w", len(starts), err)
	}
	rules, err := postgres.LoadRules(ctx, tx)
	if err != nil {
		return nil, err
	}
	for i, start := range starts {
		if err := start.decide(opened[start.Organization], rules, booked); err != nil {
			return nil, &StartError{At: i, Err: err}
		}
	}
	maps.DeleteFunc(opened, func(_ string, books *ledger.Books) bool { return len(books.Steps) == 0 })
	if err := s.Work.SaveDecided(ctx, tx, booked, unitofwork.Request{Actor: "tenants"}, opened); err != nil {
		return nil, fmt.Errorf("cannot start %d plans: %w", len(opened), err)
	}
	return unitofwork.EventsOf(opened), nil
}

// decide decides the first plan; nothing where there is one.
func (s Start) decide(books *ledger.Books, rules ledger.Rules, booked time.Time) error {
	decisions, err := books.Start(rules, s.Plan)
	for _, decision := range decisions {
		err = books.Decide(decision, books.DecisionCause(booked))
	}
	return err
}

// openCreated locks and opens the books of created organizations.
func (s *Service) openCreated(ctx context.Context, tx pgx.Tx, booked time.Time, starts []Start) (map[string]*ledger.Books, error) {
	ids := make([]string, len(starts))
	for i, start := range starts {
		ids[i] = start.Organization
	}
	slices.Sort(ids)
	known, err := postgres.LockOrganizations(ctx, tx, booked, slices.Compact(ids))
	if err != nil {
		return nil, err
	}
	return unitofwork.OpenWhole(ctx, tx, known)
}
