package app

import (
	"context"

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
	return integrity.Verify(ctx, pool, &bus.Log{Brokers: config.Brokers, Dialer: dialer}, config.kept(), config.WallClock()())
}
