package forecasts

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/balances"
	"github.com/weirlog/weir/ledger/internal/budgets"
	"github.com/weirlog/weir/ledger/internal/plans"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/snapshot"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
	"github.com/weirlog/weir/shared/pg"
)

// A Service predicts. It changes nothing.
type Service struct {
	Reads    *snapshot.Reader
	Tiers    ledger.Tiers // upgrades to propose
	Balances *balances.Service
	Budgets  *budgets.Service
	Owns     ledger.Owns
}

// A Forecast is the expected usage of the running period, with its balance.
type Forecast struct {
	ledger.Forecast
	Balance balances.Balance
}

// Forecast makes the forecast of an organization's running period.
func (s *Service) Forecast(ctx context.Context, organization string) (found Forecast, err error) {
	err = s.Reads.Read(ctx, organization, func(tx pgx.Tx, organization pg.Organization) (err error) {
		if found.Balance, err = s.Balances.Running(ctx, tx, organization); err != nil {
			return err
		}
		found.Forecast, err = forecastOf(ctx, tx, found.Balance)
		return err
	})
	return found, err
}

func forecastOf(ctx context.Context, tx pgx.Tx, b balances.Balance) (ledger.Forecast, error) {
	today := b.At.UTC().Truncate(24 * time.Hour)
	days, err := usedByDay(ctx, tx, b.Organization.ID, today.AddDate(0, 0, -ledger.ForecastDays), today)
	if err != nil {
		return ledger.Forecast{}, err
	}
	return ledger.NewForecast(history(days, today), b.Book.Period, b.Book.Used(), b.Organization.Admits(b.Book, b.At), b.At), nil
}

// history returns the bytes of each day from the first used to yesterday.
func history(days []ledger.DayCharge, today time.Time) (bytes []int64) {
	if len(days) == 0 {
		return nil
	}
	bytes = make([]int64, int(today.Sub(days[0].Day)/(24*time.Hour)))
	for _, day := range days {
		bytes[int(day.Day.Sub(days[0].Day)/(24*time.Hour))] = day.Bytes
	}
	return bytes
}

// usedByDay returns the accepted bytes of each day in [from, to), the
// earliest first, without empty days.
func usedByDay(ctx context.Context, tx pgx.Tx, organization string, from, to time.Time) (days []ledger.DayCharge, err error) {
	query := postgres.UsageQuery{Bucket: postgres.ByDay, From: from, To: to, Limit: int(to.Sub(from)/(24*time.Hour)) + 1}
	uses, err := postgres.Usages(ctx, tx, pg.Organization(organization), query)
	for _, use := range slices.Backward(uses) {
		days = append(days, ledger.DayCharge{Day: use.Hour, Requests: use.Requests, Entries: use.Entries, Bytes: use.Bytes})
	}
	return days, err
}

// A DryRun is the outcome of a possible request under a balance.
type DryRun struct {
	ledger.DryRun
	Balance    balances.Balance
	Resolution *ledger.Resolution // what would have it accepted; nil: it would be, or is suspended
}

// A Request is a possible request.
type Request struct {
	Bytes        int64
	Project, Key string // empty: no budget applies
}

// Try returns the outcome of a request; NoProject for another
// organization's project.
func (s *Service) Try(ctx context.Context, organization string, request Request) (DryRun, error) {
	if err := s.Owns.Check(organization, request.Project); err != nil {
		return DryRun{}, err
	}
	balance, err := s.Balances.Balance(ctx, organization, time.Time{})
	if err != nil {
		return DryRun{}, err
	}
	budgets, err := s.Budgets.List(ctx, organization)
	if err != nil {
		return DryRun{}, err
	}
	o, book, at := balance.Organization, balance.Book, balance.At
	dryRun := DryRun{DryRun: o.Try(book, request.Bytes, at).Under(budgets.Budgets, request.Project, request.Key), Balance: balance}
	if dryRun.Rule == ledger.RuleExhausted || dryRun.Rule == ledger.RuleQuota {
		resolution := s.Tiers.ResolutionOf(o, book, request.Bytes, at)
		dryRun.Resolution = &resolution
	}
	return dryRun, nil
}

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
	decisions, err := rules.Subscribe(books.Organization, wanted, at)
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
