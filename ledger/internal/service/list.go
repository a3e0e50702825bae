package service

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/pg"
)

// Transfers lists an organization's transfers, the latest first.
func (s *Service) Transfers(ctx context.Context, organization string, query postgres.TransferQuery) (found []postgres.BookedTransfer, err error) {
	err = s.read(ctx, organization, func(tx pgx.Tx, organization pg.Organization) (err error) {
		if err := exists(ctx, tx, organization); err != nil {
			return err
		}
		found, err = postgres.Transfers(ctx, tx, organization, query)
		return err
	})
	return found, err
}

// Usage lists what became of an organization's requests, the latest first.
func (s *Service) Usage(ctx context.Context, organization string, query postgres.UsageQuery) (found []ledger.Use, err error) {
	err = s.read(ctx, organization, func(tx pgx.Tx, organization pg.Organization) (err error) {
		if err := exists(ctx, tx, organization); err != nil {
			return err
		}
		found, err = postgres.Usages(ctx, tx, organization, query)
		return err
	})
	return found, err
}

// An Overview is a balance and transfers that agree with it.
type Overview struct {
	Balance   Balance
	Transfers []postgres.BookedTransfer
}

// Overview reads the balance of now and transfers.
func (s *Service) Overview(ctx context.Context, organization string, query postgres.TransferQuery) (found Overview, err error) {
	err = s.read(ctx, organization, func(tx pgx.Tx, organization pg.Organization) (err error) {
		if found.Balance, err = s.balanceNow(ctx, tx, organization); err != nil {
			return err
		}
		found.Transfers, err = postgres.Transfers(ctx, tx, organization, query)
		return err
	})
	return found, err
}

// exists returns ErrNoOrganization for an organization without a plan.
func exists(ctx context.Context, tx pgx.Tx, organization pg.Organization) error {
	o, found, err := postgres.LoadOrganization(ctx, tx, string(organization))
	if err == nil && (!found || o.Provisional()) {
		return ledger.ErrNoOrganization
	}
	return err
}
