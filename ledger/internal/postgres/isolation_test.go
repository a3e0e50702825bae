package postgres_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/pg"
)

// A transaction that acts for one organization sees and writes nothing of another, whatever it asks for.
func TestIsolation(t *testing.T) {
	d := newDesk(t)
	for _, organization := range []string{"acme", "evil"} {
		d.startPlan(t, organization, ledger.Indie)
		d.book(t, d.charge(organization, 60))
	}
	for _, table := range []string{"organizations", "books", "transfers", "usage", "facts", "unpublished"} {
		d.read(t, "evil", func(ctx context.Context, tx pgx.Tx) error {
			var foreign, own int
			err := tx.QueryRow(ctx, `SELECT count(*) FILTER (WHERE organization <> 'evil'), count(*) FROM `+table).Scan(&foreign, &own)
			if foreign != 0 || own == 0 {
				t.Errorf("%s shows %d rows of others among %d", table, foreign, own)
			}
			return err
		})
	}
	d.read(t, "evil", func(ctx context.Context, tx pgx.Tx) error {
		if _, err := d.Balance(ctx, tx, "acme"); !errors.Is(err, postgres.ErrNoOrganization) {
			t.Errorf("error %v, want ErrNoOrganization", err)
		}
		return nil
	})
	err := pg.InTx(t.Context(), d.pool, func(tx pgx.Tx) error {
		if err := pg.AsOrganization(t.Context(), tx, "evil"); err != nil {
			return err
		}
		_, err := tx.Exec(t.Context(), `UPDATE books SET organization = 'acme'`)
		return err
	})
	if err == nil {
		t.Error("a row was moved to another organization")
	}
}

// Every table that knows organizations has row level security forced, and the organization first in its primary key.
func TestEveryTableIsIsolated(t *testing.T) {
	d := newDesk(t)
	rows, err := d.pool.Query(t.Context(), `SELECT c.relname, c.relrowsecurity AND c.relforcerowsecurity,
			coalesce((SELECT a.attnum = i.indkey[0] FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary), false)
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'organization'
		WHERE c.relnamespace = 'ledger'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition`)
	if err != nil {
		t.Fatal(err)
	}
	var table string
	var forced, leads bool
	tables := 0
	_, err = pgx.ForEachRow(rows, []any{&table, &forced, &leads}, func() error {
		tables++
		if !forced || !leads {
			t.Errorf("%s: row level security forced %v, organization leads the primary key %v", table, forced, leads)
		}
		return nil
	})
	if err != nil || tables < 6 {
		t.Errorf("%d tables, error %v", tables, err)
	}
}
