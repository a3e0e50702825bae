package plans

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/balances"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/snapshot"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
	"github.com/weirlog/weir/shared/contract/calendar"
	"github.com/weirlog/weir/shared/pg"
)

// A Subscription is an organization's current and next plan.
type Subscription struct {
	Organization string
	Plan         ledger.Plan // in force
	Terms        ledger.Terms
	Period       calendar.Period
	State        string
	Suspended    bool
	AnchorDay    int            // of the running period
	NextAnchor   int            // from the next period on; 0: unchanged
	Next         *ScheduledPlan // nil: nothing is scheduled
}

// A ScheduledPlan comes into force at its instant.
type ScheduledPlan struct {
	Plan  ledger.Plan
	Terms ledger.Terms
}

// Subscription reads an organization's subscription.
func (s *Service) Subscription(ctx context.Context, organization string) (found Subscription, err error) {
	err = s.Reads.Read(ctx, organization, func(tx pgx.Tx, organization pg.Organization) error {
		balance, err := s.Balances.Running(ctx, tx, organization)
		if err != nil {
			return err
		}
		found = NewSubscription(balance.Organization, balance.Book, balance.At)
		return err
	})
	return found, err
}

// Tiers are those that an organization can choose from.
func (s *Service) Tiers(ctx context.Context, organization string) (tiers ledger.Tiers, err error) {
	err = s.Reads.Read(ctx, organization, func(tx pgx.Tx, _ pg.Organization) error {
		rules, err := postgres.LoadRules(ctx, tx)
		tiers = rules.Tiers
		return err
	})
	return tiers, err
}

// Subscribe changes an organization's subscription.
func (s *Service) Subscribe(ctx context.Context, organization string, request unitofwork.Request, wanted ledger.Subscription) (Subscription, error) {
	choose := func(tx pgx.Tx, books *ledger.Books, at time.Time) ([]ledger.Decision, error) {
		rules, err := postgres.LoadRules(ctx, tx)
		if err != nil {
			return nil, err
		}
		return rules.Subscribe(books.Organization, wanted, at)
	}
	return unitofwork.Decide(ctx, s.Work, organization, request, wanted, choose, func(_ pgx.Tx, books *ledger.Books, at time.Time) (Subscription, error) {
		book, err := books.At(at)
		if err != nil {
			return Subscription{}, err
		}
		return NewSubscription(books.Organization, book, at), nil
	})
}

// NewSubscription returns an organization's subscription at an instant
// in book's period.
func NewSubscription(o ledger.Organization, book ledger.Book, at time.Time) Subscription {
	plan := o.Plans.At(at)
	found := Subscription{
		Organization: o.ID, Plan: plan, Terms: plan.Terms(), Period: book.Period, State: o.State(book, at), Suspended: o.Suspended,
		AnchorDay: o.AnchorDayAt(at),
	}
	if next := o.AnchorDayAt(book.Period.End); next != found.AnchorDay {
		found.NextAnchor = next
	}
	if next, scheduled := o.Plans.Next(at); scheduled {
		found.Next = &ScheduledPlan{Plan: next, Terms: next.Terms()}
	}
	return found
}

// A Service starts and changes plans, and does what they make due.
type Service struct {
	Reads    *snapshot.Reader
	Work     *unitofwork.Writer
	Balances *balances.Service
}

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
	decisions, err := rules.Start(books.Organization, s.Plan)
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

// Thresholds are an organization's announced thresholds.
type Thresholds struct {
	Percents ledger.Thresholds
	Own      bool // false: the installation's
}

// Thresholds reads the thresholds of an organization.
func (s *Service) Thresholds(ctx context.Context, organization string) (found Thresholds, err error) {
	err = s.Reads.Read(ctx, organization, func(tx pgx.Tx, organization pg.Organization) error {
		o, _, err := s.Reads.OrganizationNow(ctx, tx, organization)
		found = thresholdsOf(o)
		return err
	})
	return found, err
}

// SetThresholds sets an organization's own thresholds; nil: the installation's.
func (s *Service) SetThresholds(ctx context.Context, organization string, request unitofwork.Request, percents ledger.Thresholds) (Thresholds, error) {
	choose := func(_ pgx.Tx, books *ledger.Books, _ time.Time) ([]ledger.Decision, error) {
		return percents.DecideFor(books.Organization)
	}
	answer := func(_ pgx.Tx, books *ledger.Books, _ time.Time) (Thresholds, error) {
		return thresholdsOf(books.Organization), nil
	}
	return unitofwork.Decide(ctx, s.Work, organization, request, percents, choose, answer)
}

func thresholdsOf(o ledger.Organization) Thresholds {
	return Thresholds{Percents: ledger.ThresholdsOf(o), Own: o.Thresholds != nil}
}
