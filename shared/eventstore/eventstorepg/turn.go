package eventstorepg

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/pg"
)

// InTurn runs fn in a transaction that acts as organization, or as the system where that is Installation, and has its
// turn from the start: nobody else appends until it ends. So what fn reads stays true until what it appends is kept,
// which is what a decision over several streams takes. It should end soon.
func (s *Store[E]) InTurn(ctx context.Context, organization string, fn func(tx pgx.Tx) error) error {
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		if err := actAs(ctx, tx, organization); err != nil {
			return err
		}
		if err := TakeTurn(ctx, tx); err != nil {
			return err
		}
		return fn(tx)
	})
}

// Begin opens a transaction like that of InTurn, for a caller who commits or rolls it back.
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

// UpdateTx is eventstore.Update in a transaction of InTurn, where no append can conflict. It returns the state after the
// new events and the version of the stream.
func UpdateTx[S, E any, P eventstore.Folder[S, E]](ctx context.Context, tx pgx.Tx, s *Store[E], stream eventstore.Stream,
	metadata eventstore.Metadata, decide func(S) ([]E, error)) (S, int64, error) {
	history, err := s.ReadTx(ctx, tx, stream)
	if err != nil {
		var none S
		return none, 0, err
	}
	state, version := eventstore.Fold[S, E, P](history), int64(len(history))
	events, err := decide(state)
	if err != nil {
		return state, version, err
	}
	for _, event := range events {
		P(&state).Apply(event)
	}
	return state, version + int64(len(events)), s.AppendTx(ctx, tx, stream, version, metadata, events...)
}
