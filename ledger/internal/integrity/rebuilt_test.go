package integrity_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/erasure"
)

// A ledger that is booked again from the log has the balances and
// chains of one whose transfers have folded.
func TestAFoldedLedgerIsTheOneMadeAgain(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	log := aLog(rand.New(rand.NewPCG(seed, 0)))
	var found []string
	for round := range uint64(2) {
		l := ledgertest.New(t)
		l.Start(t, "organization-0", ledger.Scale)
		l.SetClock(ledgertest.November.Add(8 * time.Hour))
		suspend(t, l, "organization-0")
		applyAll(t, l, log, rand.New(rand.NewPCG(seed, round)))
		seal(t, l, ledgertest.November.Add(12*time.Hour))
		if round == 0 {
			foldAll(t, l, log)
		}
		l.CheckSound(t)
		found = append(found, balancesAndHeads(t, l))
	}
	if found[0] == "" || found[0] != found[1] {
		t.Errorf("the folded ledger has\n%s, the one booked again\n%s", found[0], found[1])
	}
}

// foldAll passes 26 months without a record and prunes: every day of
// transfers folds.
func foldAll(t *testing.T, l *ledgertest.Ledger, log [][]ledger.Charge) {
	t.Helper()
	for partition, records := range log {
		l.SetPosition(t, partition, int64(len(records)), [16]byte{1}, "")
	}
	l.SetClock(ledgertest.November.AddDate(0, 26, 0))
	for _, table := range postgres.Tables(l.Now, ledger.DefaultRetention(), erasure.Retention{}) {
		for more := true; more; {
			l.As(t, func(ctx context.Context, tx pgx.Tx) (err error) {
				_, more, err = table.Prune(ctx, tx)
				return err
			})
		}
	}
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		var left int
		err := tx.QueryRow(ctx, `SELECT count(*) FROM transfers`).Scan(&left)
		if left > 0 {
			t.Errorf("%d transfers are left", left)
		}
		return err
	})
}

// balancesAndHeads returns those of all organizations as text.
func balancesAndHeads(t *testing.T, l *ledgertest.Ledger) (found string) {
	t.Helper()
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT concat(
			(SELECT string_agg(concat_ws(' ', organization, period_start, issuer, grant_left, consumed, overage, credit), E'\n'
				ORDER BY organization, period_start) FROM books), E'\n',
			(SELECT string_agg(concat_ws(' ', organization, sequence, hash), E'\n' ORDER BY organization) FROM chains))`).Scan(&found)
	})
	return found
}
