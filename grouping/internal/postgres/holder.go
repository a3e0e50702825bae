package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/erasure"
)

// Holders returns whose groups and source maps there are.
func Holders(ctx context.Context, tx pgx.Tx) ([]erasure.Deletion, error) {
	return erasure.Holders(ctx, tx, "error_groups", "source_maps")
}

// Holding returns how many groups an organization or a project has.
func Holding(ctx context.Context, tx pgx.Tx, of erasure.Deletion) (erasure.Holding, error) {
	h := erasure.Holding{What: "groups"}
	var first, last *time.Time
	err := tx.QueryRow(ctx, `SELECT count(*), min(first_seen), max(last_seen) FROM error_groups WHERE organization = $1 AND ($2 = '' OR project = $2)`,
		of.Organization, of.Project).Scan(&h.Amount, &first, &last)
	if err != nil {
		return h, fmt.Errorf("cannot count the groups of %v: %w", of, err)
	}
	if first != nil {
		h.First, h.Last = *first, *last
	}
	return h, nil
}
