package forecasts

import (
	"context"
	"time"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/balances"
)

// A Trial is what would become of a request, by a balance.
type Trial struct {
	ledger.Trial
	Balance balances.Balance
	Remedy  *ledger.Remedy // what would have it accepted; nil where it would be, or is suspended
}

// A Request is one that might be sent.
type Request struct {
	Bytes        int64
	Project, Key string // empty: no budget is looked at
}

// Try finds what would become of a request; NoProject where its project is
// none of the organization's.
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
		remedy := s.Rules.Tiers.RemedyOf(o, book, request.Bytes, at)
		trial.Remedy = &remedy
	}
	return trial, nil
}
