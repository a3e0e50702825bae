// Package pgtest gives a test a database with the tables that it needs.
package pgtest

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
)

// Open returns a pool on a database of this test's own, in which schema is migrated. Both go with the test.
func Open(t testing.TB, schema string, sets ...pg.MigrationSet) *pgxpool.Pool {
	t.Helper()
	pool, err := pg.OpenMigrated(t.Context(), testenv.Postgres(t), schema, sets...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}
