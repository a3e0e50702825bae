package cursorkey

import (
	"context"
	"embed"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/prune"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrations creates the table with its only key.
func Migrations() pg.MigrationSet {
	return pg.MigrationSet{Name: "cursorkey", FS: migrations, Rights: pg.Rights{"cursor_key": "SELECT"}}
}

// Bound returns its table's bound, for a prune.Pruner.
func Bound() prune.Bound {
	return prune.Bound{Table: "cursor_key", Keeps: "one row", By: "its primary key"}
}

// Read reads the key of the pool's schema.
func Read(ctx context.Context, pool *pgxpool.Pool) (key []byte, err error) {
	if err := pool.QueryRow(ctx, `SELECT key FROM cursor_key`).Scan(&key); err != nil {
		return nil, fmt.Errorf("cannot read the key that cursors are signed with: %w", err)
	}
	return key, nil
}
