package foresight

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
	Remedy  *ledger.Remedy // what would have it accepted; nil where it would be, or nothing but the end of a suspension would
}

// Try finds what would become of a request of so many bytes.
func (s *Service) Try(ctx context.Context, organization string, bytes int64) (Trial, error) {
	balance, err := s.Balances.Balance(ctx, organization, time.Time{})
	if err != nil {
		return Trial{}, err
	}
	trial := Trial{Trial: balance.Organization.Try(balance.Book, bytes, balance.At), Balance: balance}
	if trial.Rule == ledger.RuleExhausted || trial.Rule == ledger.RuleQuota {
		remedy := s.Tiers.RemedyOf(balance.Organization, balance.Book, bytes, balance.At)
		trial.Remedy = &remedy
	}
	return trial, nil
}
