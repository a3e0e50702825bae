package forecasts

import (
	"context"
	"time"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/balances"
)

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
