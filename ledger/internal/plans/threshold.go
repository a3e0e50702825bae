package plans

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
	"github.com/weirlog/weir/shared/pg"
)

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
		return books.SetThresholds(percents)
	}
	answer := func(_ pgx.Tx, books *ledger.Books, _ time.Time) (Thresholds, error) {
		return thresholdsOf(books.Organization), nil
	}
	return unitofwork.Decide(ctx, s.Work, organization, request, percents, choose, answer)
}

func thresholdsOf(o ledger.Organization) Thresholds {
	return Thresholds{Percents: ledger.ThresholdsOf(o), Own: o.Thresholds != nil}
}
