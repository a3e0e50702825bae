package pgtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
)

// Open returns a pool on a database of this test's own, with
// schema migrated. Both go with the test.
func Open(t testing.TB, schema string, sets ...pg.MigrationSet) *pgxpool.Pool {
	t.Helper()
	pool, err := pg.Open(t.Context(), URL(t, schema, sets...), schema)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// URL is the address of such a database. The migrations run once
// for all tests that need the same.
func URL(t testing.TB, schema string, sets ...pg.MigrationSet) string {
	t.Helper()
	return testenv.PostgresOf(t, schema+"_"+digest(t, sets), func(ctx context.Context, url string) error {
		pool, err := pg.OpenMigrated(ctx, url, schema, sets...)
		if err == nil {
			pool.Close()
		}
		return err
	})
}

// digest changes with any migration.
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
	}
	return hex.EncodeToString(sum.Sum(nil)[:6])
}
