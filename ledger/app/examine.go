package app

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ledger/internal/bus"
	"github.com/weirlog/weir/ledger/internal/integrity"
)

// A Condition is how far the running checks and the chains are,
// and what a short look has found.
type Condition = integrity.Condition

// Examine looks at the books from outside, in the time of a few questions. An
// hour that ended before due has to be sealed.
func Examine(ctx context.Context, config Config, pool *pgxpool.Pool, due time.Time) (Condition, error) {
	dialer, err := config.BrokerAccess.Dialer()
	if err != nil {
		return Condition{}, err
	}
	return integrity.Examine(ctx, pool, &bus.Log{Brokers: config.Brokers, Dialer: dialer}, due, config.kept().ChargesSince(due))
}
