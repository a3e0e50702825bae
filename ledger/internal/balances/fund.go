package balances

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/pg"
)

// Funds returns what an organization's usage draws on, in order of use.
func (s *Service) Funds(ctx context.Context, organization string) (found []ledger.Fund, err error) {
	err = s.Reads.Read(ctx, organization, func(tx pgx.Tx, organization pg.Organization) error {
		balance, err := s.Running(ctx, tx, organization)
		if err != nil {
			return err
		}
		grants, err := postgres.LiveGrants(ctx, tx, []string{balance.Organization.ID})
		found = balance.Book.Funds(grants[balance.Organization.ID], balance.At)
		return err
	})
	return found, err
}
