package outbox

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/testenv"
)

// Published facts are deleted except the newest; unpublished ones never are.
func TestTable(t *testing.T) {
	pool := pgtest.Open(t, "outboxtest", bus.Migrations(), Migrations())
	as := func(fn func(tx pgx.Tx) error) {
		t.Helper()
		testenv.Must(t, pg.InTxAsSystem(t.Context(), pool, fn))
	}
	for i := range 20 {
		as(func(tx pgx.Tx) error {
			var batch pgx.Batch
			Queue(&batch, []Fact{{Organization: "acme", ID: fmt.Sprint(i), Type: "test", At: time.Unix(int64(i), 0), Body: []byte(`{}`)}})
			return tx.SendBatch(t.Context(), &batch).Close()
		})
	}
	prune := func(retained, batch int64) (removed int64, more bool) {
		as(func(tx pgx.Tx) (err error) {
			removed, more, err = facts{relay: "relay", retained: retained, batch: batch}.Prune(t.Context(), tx)
			return err
		})
		return removed, more
	}
	left := func() (n int) {
		as(func(tx pgx.Tx) error { return tx.QueryRow(t.Context(), `SELECT count(*) FROM facts`).Scan(&n) })
		return n
	}
	oldest := func() (at time.Time) {
		as(func(tx pgx.Tx) (err error) { at, err = Table("relay").Oldest(t.Context(), tx); return err })
		return at
	}
	if !oldest().Equal(time.Unix(0, 0)) {
		t.Errorf("the oldest fact is of %s", oldest())
	}
	if n, more := prune(0, 100); n != 0 || more || left() != 20 {
		t.Fatalf("%d facts are removed before any was published", n)
	}
	as(func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `INSERT INTO bus_relays (name, position) SELECT 'relay', position FROM facts WHERE id = '14'`)
		return err
	})
	if n, more := prune(4, 3); n != 3 || !more {
		t.Errorf("%d facts are removed in one transaction, want 3; more %t", n, more)
	}
	if n, more := prune(4, 100); n != 8 || more || left() != 9 {
		t.Errorf("%d more facts are removed and %d are left; more %t", n, left(), more)
	}
	if !oldest().Equal(time.Unix(11, 0)) {
		t.Errorf("the oldest fact that is left is of %s", oldest())
	}
}

func TestTableOfAnEmptyOutbox(t *testing.T) {
	pool := pgtest.Open(t, "outboxtest", bus.Migrations(), Migrations())
	err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		at, err := Table("relay").Oldest(t.Context(), tx)
		if !at.IsZero() {
			t.Errorf("the oldest of no facts is of %s", at)
		}
		return err
	})
	testenv.Must(t, err)
}
