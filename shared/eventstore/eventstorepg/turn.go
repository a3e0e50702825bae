package eventstorepg

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Begin opens a transaction that acts as organization, or as the system where that is Installation, and has its turn from
// the start: nobody else appends until it ends. So what is read in it stays true until what follows is kept, which is what a
// decision over several streams takes. It should end soon; the caller commits it or rolls it back.
func (s *Store[E]) Begin(ctx context.Context, organization string) (pgx.Tx, error) {
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot begin: %w", err)
	}
	err = actAs(ctx, tx, organization)
	if err == nil {
		err = TakeTurn(ctx, tx)
	}
	if err != nil {
		_ = tx.Rollback(ctx)
		return nil, err
	}
	return tx, nil
}
