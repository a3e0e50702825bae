package eventstorepg

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Begin opens a transaction as organization, or as the system for
// Installation, with the turn to append from the start. What it reads
// stays true until it ends, as a decision over several streams needs.
// It should end soon.
func (s *Store[E]) Begin(ctx context.Context, organization string) (pgx.Tx, error) {
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot begin: %w", err)
	}
	err = actAs(ctx, tx, organization)
	if err == nil {
		err = LockAppends(ctx, tx)
	}
	if err != nil {
		_ = tx.Rollback(ctx)
		return nil, err
	}
	return tx, nil
}
