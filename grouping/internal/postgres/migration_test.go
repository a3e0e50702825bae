package postgres_test

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
)

// Building an index locks no reader out.
func TestIndexesAreBuiltBesideReaders(t *testing.T) {
	const founding, budgets = "migrations/0001_groups.sql", "migrations/0002_budgets.sql"
	set := ownMigrations(t, founding)
	pool := pgtest.OpenOwned(t, "groupingupgrade", pg.MigrationSet{Name: set.Name, FS: fstest.MapFS{founding: {Data: textOf(t, set.FS, founding)}}})
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		for statement := range strings.SplitSeq(string(textOf(t, set.FS, budgets)), ";\n") {
			var lockedOut []string
			err := tx.QueryRow(t.Context(), `SELECT array_agg(relation::regclass::text) FROM pg_locks
				WHERE pid = pg_backend_pid() AND mode = 'AccessExclusiveLock' AND relation IN ('error_groups'::regclass, 'group_hashes'::regclass)`).Scan(&lockedOut)
			if err != nil {
				return err
			}
			if strings.Contains(statement, "CREATE INDEX") && lockedOut != nil {
				t.Errorf("readers of %v wait for %s", lockedOut, statement)
			}
			if _, err := tx.Exec(t.Context(), statement); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// ownMigrations is the module's migration set that has a file.
func ownMigrations(t *testing.T, file string) pg.MigrationSet {
	t.Helper()
	for _, set := range postgres.Migrations() {
		if _, err := fs.Stat(set.FS, file); err == nil {
			return set
		}
	}
	t.Fatalf("no migrations have %s", file)
	return pg.MigrationSet{}
}

func textOf(t *testing.T, files fs.FS, name string) []byte {
	t.Helper()
	text, err := fs.ReadFile(files, name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
