package pg_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
)

// A look at a day locks no other, even after PostgreSQL would use a
// generic plan; afterwards nothing is locked.
func TestLookLocksOneDay(t *testing.T) {
	pool := open(t)
	const counting = `SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND relation IN (SELECT inhrelid FROM pg_inherits)`
	err := pg.InTxAsSystem(t.Context(), pool, func(tx pgx.Tx) error {
		for past := range 20 {
			if err := pg.EnsureDays(t.Context(), tx, "notes", day.AddDate(0, 0, -past)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	err = pg.InTxAsSystem(t.Context(), pool, func(tx pgx.Tx) error {
		for range 7 {
			held := -1
			err := pg.QueryInSavepoint(t.Context(), tx, `SELECT (`+counting+`) + (SELECT count(*) FROM notes WHERE day = $1)`, []any{day}, func(rows pgx.Rows) (err error) {
				held, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
				return err
			})
			if err != nil || held > 3 { // the table and its indexes
				t.Errorf("%d days and indexes are locked, %v", held, err)
			}
		}
		var held int
		err := tx.QueryRow(t.Context(), counting).Scan(&held)
		if held > 0 {
			t.Errorf("%d are locked behind it", held)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
