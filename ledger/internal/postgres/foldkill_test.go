package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/postgres"
)

// A process that is killed when it has folded a day of transfers, before the commit, has changed nothing; another one folds the day once, and the books
// agree before and after.
func TestFoldIsKilled(t *testing.T) {
	l := checkedLedger{ledgertest.New(t)}
	l.Start(t, "acme", ledger.Scale)
	for range 5 {
		l.chargeRange(t, "acme", 10, l.Now())
	}
	whole := l.count(t, "transfers")
	l.SetClock(ledgertest.November.AddDate(0, 26, 0))
	fold := postgres.Tables(l.Now, ledger.DefaultRetention())[0]
	err := l.Try(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
		if folded, _, err := fold.Prune(ctx, tx); err != nil || folded != 1 {
			t.Fatal(folded, err)
		}
		_, err := tx.Exec(ctx, `SELECT pg_terminate_backend(pg_backend_pid())`)
		return err
	})
	if err == nil {
		t.Fatal("the fold was not killed")
	}
	if n, sums := l.count(t, "transfers"), l.count(t, "folded_transfers"); n != whole || sums != 0 {
		t.Errorf("%d of %d transfers are left, and %d sums", n, whole, sums)
	}
	l.CheckSound(t)
	for range 2 {
		l.prune(t)
		if n, sums := l.count(t, "transfers"), l.count(t, "folded_transfers"); n != 0 || sums == 0 {
			t.Errorf("after a fold %d transfers are left, and %d sums", n, sums)
		}
		l.CheckSound(t)
	}
}
