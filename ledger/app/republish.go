package app

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger/internal/postgres"
)

// Republish publishes the state of every account again as the newest:
// for books of an earlier hour or a new topic. tx sees every
// organization and works in the module's schema.
func Republish(ctx context.Context, tx pgx.Tx) error {
	if err := postgres.RaiseVersions(ctx, tx); err != nil {
		return err
	}
	return postgres.MarkAllUnpublished(ctx, tx)
}

// Charged is what requests of one organization were charged.
type Charged = postgres.Charged

// ChargedIn returns what was charged for records in a range of offsets
// of a partition of weir.logs.v1, by organization. tx is as for Republish.
func ChargedIn(ctx context.Context, tx pgx.Tx, partition int, from, to int64) ([]Charged, error) {
	return postgres.ChargedIn(ctx, tx, partition, from, to)
}

// AcceptLost skips offsets of a partition of weir.logs.v1 that are
// lost, from the booked end to an offset. tx is as for Republish.
func AcceptLost(ctx context.Context, tx pgx.Tx, partition int, to int64) error {
	return postgres.SaveLost(ctx, tx, partition, to)
}
