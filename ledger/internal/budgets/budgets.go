package budgets

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/snapshot"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
	"github.com/weirlog/weir/shared/contract/calendar"
	"github.com/weirlog/weir/shared/pg"
)

// A Service sets budgets of projects and keys.
type Service struct {
	Reads *snapshot.Reader
	Work  *unitofwork.Writer
	Owns  ledger.Owns
}

// check returns NoProject for another organization's project. Keys are
// not checked: an unknown one uses nothing.
func (s *Service) check(organization string, specs ...ledger.BudgetSpec) error {
	for _, spec := range specs {
		if err := s.Owns.Check(organization, spec.Project); err != nil {
			return err
		}
	}
	return nil
}

// Budgets are an organization's budgets in a period.
type Budgets struct {
	Period  calendar.Period
	Budgets []ledger.Budget // projects before keys
}

// List returns an organization's budgets.
func (s *Service) List(ctx context.Context, organization string) (found Budgets, err error) {
	err = s.Reads.Read(ctx, organization, func(tx pgx.Tx, organization pg.Organization) error {
		o, now, err := s.Reads.OrganizationNow(ctx, tx, organization)
		if err != nil {
			return err
		}
		budgets, err := postgres.LoadBudgets(ctx, tx, []string{o.ID})
		found = budgetsIn(o.PeriodAt(now), budgets[o.ID])
		return err
	})
	return found, err
}

func budgetsIn(period calendar.Period, budgets []ledger.Budget) Budgets {
	found := Budgets{Period: period}
	for _, budget := range budgets {
		found.Budgets = append(found.Budgets, budget.In(period.Start))
	}
	slices.SortFunc(found.Budgets, func(a, b ledger.Budget) int { return ledger.CompareSpenders(a.Spender, b.Spender) })
	return found
}

// Set sets the budget of a project or key.
func (s *Service) Set(ctx context.Context, organization string, request unitofwork.Request, spec ledger.BudgetSpec) (Budgets, error) {
	choose := func(tx pgx.Tx, books *ledger.Books, at time.Time) ([]ledger.Decision, error) {
		if err := s.check(organization, spec); err != nil {
			return nil, err
		}
		used, err := spent(ctx, tx, books, at, []ledger.BudgetSpec{spec})
		if err != nil {
			return nil, err
		}
		return books.Budgets.Set(spec, used[0])
	}
	return unitofwork.Decide(ctx, s.Work, organization, request, spec, choose, decidedBudgets)
}

// SetAll replaces all budgets of an organization.
func (s *Service) SetAll(ctx context.Context, organization string, request unitofwork.Request, specs []ledger.BudgetSpec) (Budgets, error) {
	choose := func(tx pgx.Tx, books *ledger.Books, at time.Time) ([]ledger.Decision, error) {
		if err := s.check(organization, specs...); err != nil {
			return nil, err
		}
		used, err := spent(ctx, tx, books, at, specs)
		if err != nil {
			return nil, err
		}
		return books.Budgets.SetAll(specs, used)
	}
	return unitofwork.Decide(ctx, s.Work, organization, request, specs, choose, decidedBudgets)
}

// Remove removes a budget, if there is one, even of a deleted project.
func (s *Service) Remove(ctx context.Context, organization string, request unitofwork.Request, of ledger.Spender) (Budgets, error) {
	choose := func(_ pgx.Tx, books *ledger.Books, _ time.Time) ([]ledger.Decision, error) {
		decisions, err := books.Budgets.Remove(of)
		if err == nil && len(decisions) == 0 {
			err = s.check(organization, ledger.BudgetSpec{Spender: of})
		}
		return decisions, err
	}
	return unitofwork.Decide(ctx, s.Work, organization, request, of, choose, decidedBudgets)
}

// spent returns what specs' spenders have used of an instant's period.
// The lock of the books keeps it until the decision.
func spent(ctx context.Context, tx pgx.Tx, books *ledger.Books, at time.Time, specs []ledger.BudgetSpec) ([]int64, error) {
	if err := ledger.CheckBudgets(specs); err != nil {
		return nil, err
	}
	spenders := make([]ledger.Spender, len(specs))
	for i, spec := range specs {
		spenders[i] = spec.Spender
	}
	period := books.Organization.PeriodAt(at)
	used, err := postgres.Spent(ctx, tx, pg.Organization(books.Organization.ID), spenders, period.Start, period.End)
	if err != nil {
		return nil, fmt.Errorf("cannot read what was used: %w", err)
	}
	return used, nil
}

// decidedBudgets returns the budgets of opened books.
func decidedBudgets(_ pgx.Tx, books *ledger.Books, at time.Time) (Budgets, error) {
	budgets := make([]ledger.Budget, len(books.Budgets.Kept))
	for i, budget := range books.Budgets.Kept {
		budgets[i] = *budget
	}
	return budgetsIn(books.Organization.PeriodAt(at), budgets), nil
}
