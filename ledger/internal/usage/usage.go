package usage

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/snapshot"
	"github.com/weirlog/weir/shared/pg"
)

// A Service lists requests by outcome.
type Service struct {
	Reads *snapshot.Reader
	Tiers ledger.Tiers // upgrades to propose
}

// List lists an organization's requests by outcome, the latest first.
func (s *Service) List(ctx context.Context, organization string, query postgres.UsageQuery) (found []ledger.Use, err error) {
	err = s.Reads.Read(ctx, organization, func(tx pgx.Tx, organization pg.Organization) (err error) {
		if err := snapshot.Exists(ctx, tx, organization); err != nil {
			return err
		}
		found, err = postgres.Usages(ctx, tx, organization, query)
		return err
	})
	return found, err
}
