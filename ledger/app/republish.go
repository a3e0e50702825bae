package app

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger/internal/postgres"
)

// Republish has the state of every account published again, as newer than all
// that was: for books of an earlier hour, or where the topic was made anew. The
// transaction sees every organization and works in the module's schema.
func Republish(ctx context.Context, tx pgx.Tx) error {
	if err := postgres.RaiseVersions(ctx, tx); err != nil {
		return err
	}
	return postgres.MarkAllUnpublished(ctx, tx)
}

// AcceptLost accounts for offsets of a partition of weir.logs.v1 that nobody
// can book any more, from where the books end to an offset. The transaction is
// as for Republish.
func AcceptLost(ctx context.Context, tx pgx.Tx, partition int, to int64) error {
	return postgres.SaveLost(ctx, tx, partition, to)
}
