package pgtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

// Open returns a pool on the test's own database, with schema migrated,
// as the serving role: it has only the sets' rights. Both are removed
// with the test.
func Open(t testing.TB, schema string, sets ...pg.MigrationSet) *pgxpool.Pool {
	t.Helper()
	return open(t, URL(t, schema, sets...), schema)
}

func open(t testing.TB, url, schema string) *pgxpool.Pool {
	t.Helper()
	pool, err := pg.Open(t.Context(), url, schema)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// URL returns the address of such a database for that role. The
// migrations run once for all tests with the same sets.
func URL(t testing.TB, schema string, sets ...pg.MigrationSet) string {
	t.Helper()
	return postgrestest.Serving(Owned(t, schema, sets...))
}

// OpenOwned is Open as the role that owns the schema.
func OpenOwned(t testing.TB, schema string, sets ...pg.MigrationSet) *pgxpool.Pool {
	t.Helper()
	return open(t, Owned(t, schema, sets...), schema)
}

// Owner returns a pool on the database of an Open one, as the role that
// owns the schema: for tests that spoil what serving can't.
func Owner(t testing.TB, pool *pgxpool.Pool) *pgxpool.Pool {
	t.Helper()
	config := pool.Config().ConnConfig
	return open(t, postgrestest.Owner(config.ConnString()), config.RuntimeParams["search_path"])
}

// Owned is URL for the role that owns the schema.
func Owned(t testing.TB, schema string, sets ...pg.MigrationSet) string {
	t.Helper()
	return postgrestest.Filled(t, schema+"_"+digest(t, sets), func(ctx context.Context, url string) error {
		return fill(ctx, url, pg.Schema{Name: schema, Migrations: sets})
	})
}

func fill(ctx context.Context, url string, schema pg.Schema) error {
	pool, err := pg.OpenMigrated(ctx, url, schema.Name, schema.Migrations...)
	if err != nil {
		return err
	}
	defer pool.Close()
	serving, err := pgx.ParseConfig(postgrestest.Serving(url))
	if err != nil {
		return err
	}
	return pg.Grant(ctx, pool, schema, serving.User)
}

// digest changes with any migration or right.
func digest(t testing.TB, sets []pg.MigrationSet) string {
	t.Helper()
	sum := sha256.New()
	for _, set := range sets {
		files, err := set.Files()
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := fs.ReadFile(set.FS, file)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(sum, "%s %s %d\n%s", set.Name, file, len(text), text)
		}
		fmt.Fprintln(sum, set.Rights)
	}
	return hex.EncodeToString(sum.Sum(nil)[:6])
}
