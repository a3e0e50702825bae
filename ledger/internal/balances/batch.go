package balances

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
)

// awaitBatch returns once a batch is charged, or once everything
// acknowledged before the call is booked without it.
func (w *Waiter) awaitBatch(ctx context.Context, organization string, batch uuid.UUID) (charged bool, err error) {
	if charged, err = w.isCharged(ctx, organization, batch); err != nil || charged {
		return charged, err
	}
	end, err := w.endNow(ctx)
	if err != nil {
		return false, err
	}
	err = w.follow(ctx, func(booked contract.Positions) (bool, error) {
		charged, err = w.isCharged(ctx, organization, batch)
		return charged || reaches(booked, end), err
	})
	return charged, err
}

func (w *Waiter) isCharged(ctx context.Context, organization string, batch uuid.UUID) (charged bool, err error) {
	err = w.Reads.Read(ctx, organization, func(tx pgx.Tx, id pg.Organization) error {
		charged, err = postgres.IsCharged(ctx, tx, id, batch)
		return err
	})
	return charged, err
}
