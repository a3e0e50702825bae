package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/erasure"
)

// Holders returns whose groups and source maps there are.
func Holders(ctx context.Context, tx pgx.Tx) ([]erasure.Deletion, error) {
	return erasure.Holders(ctx, tx, "error_groups", "source_maps")
}

// Holding returns how many groups an organization or a project has.
func Holding(ctx context.Context, tx pgx.Tx, of erasure.Deletion) (erasure.Holding, error) {
	return erasure.Hold(ctx, tx, "groups", of, `SELECT count(*), min(first_seen), max(last_seen) FROM error_groups
		WHERE organization = $1 AND ($2 = '' OR project = $2)`)
}
