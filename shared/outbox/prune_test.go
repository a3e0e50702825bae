package outbox

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
)

// What was said is forgotten but for the newest; what is still to be said never is.
func TestPruner(t *testing.T) {
	pool := pgtest.Open(t, "outboxtest", bus.Migrations(), Migrations())
	as := func(fn func(tx pgx.Tx) error) {
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
	for i := range 20 {
		as(func(tx pgx.Tx) error {
			var batch pgx.Batch
			Queue(&batch, []Fact{{Organization: "acme", ID: fmt.Sprint(i), Type: "test", At: time.Unix(0, 0), Body: []byte(`{}`)}})
			return tx.SendBatch(t.Context(), &batch).Close()
		})
	}
	p := &Pruner{Pool: pool, Relay: "relay"}
	left := func() (n int) {
		as(func(tx pgx.Tx) error { return tx.QueryRow(t.Context(), `SELECT count(*) FROM facts`).Scan(&n) })
		return n
	}
	if n, err := p.forget(t.Context(), 0, 100); n != 0 || err != nil || left() != 20 {
		t.Fatalf("%d facts are forgotten before any was said: %v", n, err)
	}
	as(func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `INSERT INTO bus_relays (name, transaction, position)
			SELECT 'relay', transaction::text::bigint, position FROM facts WHERE id = '14'`)
		return err
	})
	if n, err := p.forget(t.Context(), 4, 3); n != 3 || err != nil {
		t.Errorf("%d facts are forgotten at once, want 3: %v", n, err)
	}
	if n, err := p.forget(t.Context(), 4, 100); n != 8 || err != nil || left() != 9 {
		t.Errorf("%d more facts are forgotten and %d are left: %v", n, left(), err)
	}
	if err := p.RunOnce(t.Context()); err != nil || left() != 9 {
		t.Errorf("%d are left after a run: %v", left(), err)
	}
}
