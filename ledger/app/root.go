package app

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger/internal/postgres"
)

// A DailyRoot is the root of the chains at the end of a day. A copy
// kept elsewhere proves that the books of that day are unchanged.
type DailyRoot = postgres.DailyRoot

// DailyRoots returns the roots of all days kept. tx works in the module's schema.
func DailyRoots(ctx context.Context, tx pgx.Tx) ([]DailyRoot, error) {
	return postgres.DailyRoots(ctx, tx)
}
