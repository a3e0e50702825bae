package integrity

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/snapshot"
	"github.com/weirlog/weir/shared/pg"
)

// Chain lists the links of an organization's chain, the latest first.
func (s *Service) Chain(ctx context.Context, organization string, query postgres.LinkQuery) (links []ledger.Link, err error) {
	err = s.Reads.Read(ctx, organization, func(tx pgx.Tx, organization pg.Organization) (err error) {
		if err := snapshot.Exists(ctx, tx, organization); err != nil {
			return err
		}
		links, err = postgres.Links(ctx, tx, organization, query)
		return err
	})
	return links, err
}
