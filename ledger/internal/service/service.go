package service

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/pg"
)

// A Service charges and reads balances. It writes in the caller's transaction, which sees all
// organizations.
type Service struct {
	Reads *pgxpool.Pool // for those who ask
	Tiers ledger.Tiers
	Kept  ledger.Retention
	Clock func() time.Time
}

// read runs fn in a snapshot of one organization's rows. It returns ErrNoOrganization for an
// impossible id.
func (s *Service) read(ctx context.Context, organization string, fn func(tx pgx.Tx, organization pg.Organization) error) error {
	return pg.Snapshot(ctx, s.Reads, func(tx pgx.Tx) error {
		if err := pg.AsOrganization(ctx, tx, pg.Organization(organization)); err != nil {
			return noOrganization(err)
		}
		return fn(tx, pg.Organization(organization))
	})
}

// noOrganization is the error for an id that nobody can act as. An unreachable database is none.
func noOrganization(err error) error {
	if pg.IsTransient(err) {
		return err
	}
	return fmt.Errorf("%w: %w", ledger.ErrNoOrganization, err)
}
