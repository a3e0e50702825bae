package forecasts

import (
	"context"
	"time"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/balances"
)

// A Trial is the outcome of a possible request under a balance.
type Trial struct {
	ledger.Trial
	Balance balances.Balance
	Remedy  *ledger.Remedy // what would have it accepted; nil: it would be, or is suspended
}

// A Request is a possible request.
type Request struct {
	Bytes        int64
	Project, Key string // empty: no budget applies
}

// Try returns the outcome of a request; NoProject for another
// organization's project.
func (s *Service) Try(ctx context.Context, organization string, request Request) (Trial, error) {
	if err := s.Owns.Check(organization, request.Project); err != nil {
		return Trial{}, err
	}
	balance, err := s.Balances.Balance(ctx, organization, time.Time{})
	if err != nil {
		return Trial{}, err
	}
	budgets, err := s.Budgets.List(ctx, organization)
	if err != nil {
		return Trial{}, err
	}
	o, book, at := balance.Organization, balance.Book, balance.At
	trial := Trial{Trial: o.Try(book, request.Bytes, at).Under(budgets.Budgets, request.Project, request.Key), Balance: balance}
	if trial.Rule == ledger.RuleExhausted || trial.Rule == ledger.RuleQuota {
		remedy := s.Tiers.RemedyOf(o, book, request.Bytes, at)
		trial.Remedy = &remedy
	}
	return trial, nil
}
