package app

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ledger/internal/bus"
	"github.com/weirlog/weir/ledger/internal/integrity"
)

// A Condition is the progress of the running checks and the chains, and
// the violations of a short examination.
type Condition = integrity.Condition

// Examine checks the books from outside with a few queries. An hour
// that ended before due must be sealed.
func Examine(ctx context.Context, config Config, pool *pgxpool.Pool, due time.Time) (Condition, error) {
	dialer, err := config.BrokerAccess.Dialer()
	if err != nil {
		return Condition{}, err
	}
	return integrity.Examine(ctx, pool, &bus.Log{Brokers: config.Brokers, Dialer: dialer}, due, config.kept().ChargesSince(due))
}
