package balances

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/snapshot"
	"github.com/weirlog/weir/shared/pg"
)

// Transfers lists an organization's transfers, the latest first.
func (s *Service) Transfers(ctx context.Context, organization string, query postgres.TransferQuery) (found postgres.TransferPage, err error) {
	err = s.Lists.Read(ctx, organization, func(tx pgx.Tx, organization pg.Organization) (err error) {
		if err := snapshot.Exists(ctx, tx, organization); err != nil {
			return err
		}
		found, err = postgres.Transfers(ctx, tx, organization, query)
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
	err = s.Reads.Read(ctx, organization, func(tx pgx.Tx, organization pg.Organization) (err error) {
		if found.Balance, err = s.Running(ctx, tx, organization); err != nil {
			return err
		}
		page, err := postgres.Transfers(ctx, tx, organization, query)
		found.Transfers = page.Transfers
		return err
	})
	return found, err
}
