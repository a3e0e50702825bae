package postgres

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
)

// before returns the migrations before a file's.
func before(t *testing.T, name string) []pg.MigrationSet {
	t.Helper()
	sets := Migrations()
	last := &sets[len(sets)-1]
	entries, err := migrations.ReadDir("migrations")
	if err != nil {
		t.Fatal(err)
	}
	older := fstest.MapFS{}
	for _, entry := range entries {
		text, err := migrations.ReadFile("migrations/" + entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		if strings.Compare(entry.Name(), name) < 0 {
			older["migrations/"+entry.Name()] = &fstest.MapFile{Data: text}
		}
	}
	last.FS = older
	return sets
}

// Usage from before keys stays as accepted usage, of each organization,
// and is sound.
func TestUsageOfBeforeStays(t *testing.T) {
	pool := pgtest.OpenOwned(t, Schema, before(t, "0004_usage.sql")...)
	asSystem := func(fn func(tx pgx.Tx) error) {
		t.Helper()
		err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
			if err := pg.AsSystem(t.Context(), tx); err != nil {
				return err
			}
			return fn(tx)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	asSystem(func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `INSERT INTO usage VALUES ('acme', '2026-11-20', 'shop', 100, 10, 1), ('evil', '2026-11-20', 'shop', 7, 1, 0)`)
		return err
	})
	if err := pg.Migrate(t.Context(), pool, Schema, Migrations()...); err != nil {
		t.Fatal(err)
	}
	asSystem(func(tx pgx.Tx) error {
		rows, err := tx.Query(t.Context(), `SELECT concat_ws(' ', organization, day, project, outcome, bytes, entries, errors) FROM usage_days ORDER BY organization`)
		if err != nil {
			return err
		}
		got, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if want := []string{"acme 2026-11-20 shop accepted 100 10 1", "evil 2026-11-20 shop accepted 7 1 0"}; !slices.Equal(got, want) {
			t.Errorf("usage %q, want %q", got, want)
		}
		return err
	})
}
