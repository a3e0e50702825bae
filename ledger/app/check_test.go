package app_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
)

// The check against the log finds a range with other bytes, a missing
// one, a lost posting, and a changed balance.
func TestVerifyFinds(t *testing.T) {
	r := newRig(t)
	process, stop := r.start()
	r.create("acme", "indie")
	r.awaitAccount("acme")
	for range 5 {
		r.Accept(logs("acme", 10), logs("acme", 20), logs("acme", 30), logs("acme", 40))
		r.awaitCounted()
	}
	token := r.token("acme", "billing:read")
	testenv.Eventually(t, waitTimeout, func() error {
		if status, body := get(t, process, token, "/v1/organizations/acme/verification"); status != http.StatusOK || body["sound"] != true {
			return fmt.Errorf("it answers %d %v", status, body)
		}
		return nil
	})
	if status, body := get(t, process, token, "/v1/organizations/acme/chain"); status != http.StatusOK || body["next_cursor"] != nil {
		t.Errorf("the chain is answered %d %v", status, body)
	}
	stop()
	r.verify()
	tests := []struct{ invariant, tamper string }{
		{ledger.LedgerIsLog, `UPDATE ranges SET checksum = checksum + 1 WHERE first_offset = 0`},
		{ledger.LedgerIsLog, `UPDATE ranges SET checksum = checksum - 1, bytes = bytes + 1 WHERE first_offset = 0 AND bytes > 0`},
		// The last range of a partition is never joined to those before it.
		{ledger.RangesFollow, `UPDATE ranges r SET next_offset = next_offset + 1
			WHERE EXISTS (SELECT FROM ranges l WHERE l.partition = r.partition AND l.first_offset > r.first_offset)`},
		{ledger.RangeIsTransfers, `DELETE FROM transfers WHERE ctid = (SELECT min(ctid) FROM transfers WHERE reason = 2)`},
		{ledger.BalanceIsTransfers, `UPDATE books SET grant_left = grant_left - 1, consumed = consumed + 1 WHERE consumed > 0`},
	}
	for _, test := range tests {
		t.Run(test.invariant, func(t *testing.T) {
			tampered := &rig{t: t, config: r.config}
			tampered.tamper(test.tamper)
			violations, err := app.Verify(t.Context(), r.config)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range violations {
				if v.Invariant == test.invariant {
					return
				}
			}
			t.Errorf("found only %v", violations)
		})
	}
}

func (r *rig) tamper(statement string) {
	r.t.Helper()
	pool, err := pg.Open(r.t.Context(), r.owning().DatabaseURL.Reveal(), postgres.Schema)
	if err != nil {
		r.t.Fatal(err)
	}
	defer pool.Close()
	err = pg.InTx(r.t.Context(), pool, func(tx pgx.Tx) error {
		if err := pg.AsSystem(r.t.Context(), tx); err != nil {
			return err
		}
		tag, err := tx.Exec(r.t.Context(), statement)
		if err == nil && tag.RowsAffected() == 0 {
			r.t.Errorf("%s changed nothing", statement)
		}
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
}
