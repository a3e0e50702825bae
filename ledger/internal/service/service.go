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

// A Service charges, and answers for what it charged. What writes does it in the caller's transaction, which has to see all
// organizations.
type Service struct {
	Reads *pgxpool.Pool // for those who ask
	Tiers ledger.Tiers
	Kept  ledger.Retention
	Clock func() time.Time
}

// read runs fn in a snapshot that sees the rows of one organization. ErrNoOrganization where none can have that id.
func (s *Service) read(ctx context.Context, organization string, fn func(tx pgx.Tx, organization pg.Organization) error) error {
	return pg.Snapshot(ctx, s.Reads, func(tx pgx.Tx) error {
		if err := pg.AsOrganization(ctx, tx, pg.Organization(organization)); err != nil {
			return noOrganization(err)
		}
		return fn(tx, pg.Organization(organization))
	})
}

// noOrganization is the error for an id that nobody can act as. A database that is not there says nothing about ids.
func noOrganization(err error) error {
	if pg.IsTransient(err) {
		return err
	}
	return fmt.Errorf("%w: %w", ledger.ErrNoOrganization, err)
}
