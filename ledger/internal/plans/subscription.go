package plans

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
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

// Subscribe changes an organization's subscription.
func (s *Service) Subscribe(ctx context.Context, organization string, request unitofwork.Request, wanted ledger.Subscription) (Subscription, error) {
	choose := func(tx pgx.Tx, books *ledger.Books, at time.Time) ([]ledger.Decision, error) {
		rules, err := postgres.LoadRules(ctx, tx)
		if err != nil {
			return nil, err
		}
		return books.Subscribe(rules, wanted, at)
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
