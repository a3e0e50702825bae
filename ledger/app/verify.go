package app

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/bus"
	"github.com/weirlog/weir/ledger/internal/integrity"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/pg"
)

// Verify checks the whole database, and the log as far as it is kept,
// and returns the violations.
func Verify(ctx context.Context, config Config) ([]ledger.Violation, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	dialer, err := config.BrokerAccess.Dialer()
	if err != nil {
		return nil, err
	}
	pool, err := pg.Open(ctx, config.DatabaseURL.Reveal(), postgres.Schema)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	kept, err := keptBy(ctx, pool)
	if err != nil {
		return nil, err
	}
	return integrity.Verify(ctx, pool, &bus.Log{Brokers: config.Brokers, Dialer: dialer}, kept, config.WallClock()())
}

// keptBy returns how long the ledger of a database keeps what.
func keptBy(ctx context.Context, pool *pgxpool.Pool) (kept ledger.Retention, err error) {
	err = pg.InTxAsSystem(ctx, pool, func(tx pgx.Tx) error {
		kept, err = postgres.LoadRetention(ctx, tx)
		return err
	})
	return kept, err
}
