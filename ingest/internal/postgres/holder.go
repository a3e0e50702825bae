package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/erasure"
)

// Holders returns whose entries and rules there are.
func Holders(ctx context.Context, tx pgx.Tx) ([]erasure.Deletion, error) {
	return erasure.Holders(ctx, tx, "blocks", "ingest_rules")
}

// Holding returns how many entries of an organization or a project are
// stored, without those that have moved to ClickHouse.
func Holding(ctx context.Context, tx pgx.Tx, of erasure.Deletion) (erasure.Holding, error) {
	return erasure.Hold(ctx, tx, "entries", of, `SELECT coalesce(sum((SELECT sum(n) FROM unnest(entries) AS n)), 0)::bigint, min(received_at), max(received_at)
		FROM blocks WHERE organization = $1 AND ($2 = '' OR project = $2)`)
}
