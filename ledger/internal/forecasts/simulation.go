package forecasts

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/plans"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
	"github.com/weirlog/weir/shared/pg"
)

// A Simulation is what a subscription would change now, and what past
// periods would have been under it.
type Simulation struct {
	Before, After plans.Subscription
	Granted       [2]int64 // in the running period, before and after
	Remaining     [2]int64
	Periods       []ledger.SimulatedPeriod // the running one first
}

// Simulate returns the effect of a subscription.
func (s *Service) Simulate(ctx context.Context, organization string, wanted ledger.Subscription) (found Simulation, err error) {
	err = s.Reads.Read(ctx, organization, func(tx pgx.Tx, organization pg.Organization) (err error) {
		o, _, err := s.Reads.OrganizationNow(ctx, tx, organization)
		if err != nil {
			return err
		}
		opened, err := unitofwork.OpenWhole(ctx, tx, map[string]ledger.Organization{o.ID: o})
		if err != nil {
			return err
		}
		rules, err := postgres.LoadRules(ctx, tx)
		if err != nil {
			return err
		}
		if found, err = s.simulateChange(opened[o.ID], rules, wanted); err != nil {
			return err
		}
		if wanted.Plan, err = rules.Seed(wanted.Plan); err != nil {
			return err
		}
		found.Periods, err = s.simulatePast(ctx, tx, o, wanted.Plan)
		return err
	})
	return found, err
}

// simulateChange changes books that are not saved.
func (s *Service) simulateChange(books *ledger.Books, rules ledger.Rules, wanted ledger.Subscription) (found Simulation, err error) {
	at := books.Organization.NotBefore(s.Reads.Clock().UTC())
	if found.Before, found.Granted[0], found.Remaining[0], err = s.stateOf(books, at); err != nil {
		return found, err
	}
	decisions, err := books.Subscribe(rules, wanted, at)
	for _, decision := range decisions {
		if err == nil {
			err = books.Decide(decision, books.DecisionCause(at))
		}
	}
	if err == nil {
		found.After, found.Granted[1], found.Remaining[1], err = s.stateOf(books, at)
	}
	return found, err
}

func (s *Service) simulatePast(ctx context.Context, tx pgx.Tx, o ledger.Organization, plan ledger.Plan) (simulated []ledger.SimulatedPeriod, err error) {
	periods := o.LastPeriods(o.Now(s.Reads.Clock()), ledger.SimulatedPeriods)
	days, err := usedByDay(ctx, tx, o.ID, periods[len(periods)-1].Start, periods[0].End)
	if err != nil {
		return nil, err
	}
	for _, period := range periods {
		simulated = append(simulated, plan.Simulate(o.Anchoring, period, days))
	}
	return simulated, nil
}

// stateOf returns the subscription at an instant, and the running
// period's allowance and remainder.
func (s *Service) stateOf(books *ledger.Books, at time.Time) (found plans.Subscription, granted, remaining int64, err error) {
	book, err := books.At(at)
	if err != nil {
		return found, 0, 0, err
	}
	return plans.NewSubscription(books.Organization, book, at), book.Granted(), book.Remaining(), nil
}
