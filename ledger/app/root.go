package app

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger/internal/postgres"
)

// A DailyRoot is the root of the chains at the end of a day: who has noted it
// elsewhere can tell whether the books of that day are still those.
type DailyRoot = postgres.DailyRoot

// DailyRoots are the roots of all days that are kept. The transaction works in
// the module's schema.
func DailyRoots(ctx context.Context, tx pgx.Tx) ([]DailyRoot, error) {
	return postgres.DailyRoots(ctx, tx)
}
