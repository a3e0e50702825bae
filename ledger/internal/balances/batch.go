package balances

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/inbox"
	"github.com/weirlog/weir/shared/pg"
)

// ErrNoBatch means that a batch is not counted, though everything is booked
// that was acknowledged before.
var ErrNoBatch = errors.New("no such batch is counted")

// AwaitBatch waits until a batch is counted, so that a client reads one
// of its own writes without waiting for those of others.
func (s *Service) AwaitBatch(ctx context.Context, organization string, batch uuid.UUID) error {
	counted, err := s.isCounted(ctx, organization, batch)
	if err != nil || counted {
		return err
	}
	if err := s.AwaitAll(ctx); err != nil {
		return err
	}
	if counted, err = s.isCounted(ctx, organization, batch); err == nil && !counted {
		return ErrNoBatch
	}
	return err
}

func (s *Service) isCounted(ctx context.Context, organization string, batch uuid.UUID) (counted bool, err error) {
	err = s.Reads.Read(ctx, organization, func(tx pgx.Tx, id pg.Organization) error {
		counted, err = inbox.HasWhole(ctx, tx, string(id), batch)
		return err
	})
	return counted, err
}
