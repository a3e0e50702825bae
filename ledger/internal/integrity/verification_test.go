package integrity_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/integrity"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/testenv"
)

// decided is a sealed ledger where acme has a grant, a budget and statements.
func decided(t *testing.T) *ledgertest.Ledger {
	t.Helper()
	l := sealed(t)
	l.GrantAcme(t, ledger.Grant{Amount: 50, Priority: 1})
	l.Book(t, logged("acme", 0, 4, l.Pass(time.Minute)))
	if _, err := l.Budgets.Set(t.Context(), "acme", unitofwork.Request{}, ledger.BudgetSpec{Spender: ledger.Spender{Project: "project"}, Bytes: 500}); err != nil {
		t.Fatal(err)
	}
	l.AdvanceAll(t)
	return l
}

// A verification finds the violations of one organization, and none of others.
func TestVerifyOneOrganization(t *testing.T) {
	l := decided(t)
	found, err := l.Integrity.Verify(t.Context(), "acme")
	if err != nil || len(found.Violations) > 0 || found.Head.Sequence != 4 || !found.Sealed.Equal(l.Now().Add(-time.Minute)) {
		t.Errorf("found %+v, error %v", found, err)
	}
	if _, err := l.Integrity.Verify(t.Context(), "b"); !errors.Is(err, ledger.ErrNoOrganization) {
		t.Errorf("of an organization that nobody has created: error %v", err)
	}
	for _, tampered := range []struct{ with, back, want string }{
		{`UPDATE books SET issuer = issuer - 1, consumed = consumed + 1`, `UPDATE books SET issuer = issuer + 1, consumed = consumed - 1`, ledger.BalanceIsTransfers},
		{`UPDATE usage_hours SET entries = entries + 1`, `UPDATE usage_hours SET entries = entries - 1`, ledger.HoursAreDays},
		{`UPDATE usage_days SET bytes = bytes + 7`, `UPDATE usage_days SET bytes = bytes - 7`, ledger.UsageIsCharges},
		{
			`WITH hours AS (UPDATE usage_hours SET bytes = bytes + 7 WHERE organization = 'acme') UPDATE usage_days SET bytes = bytes + 7`,
			`WITH hours AS (UPDATE usage_hours SET bytes = bytes - 7 WHERE organization = 'acme') UPDATE usage_days SET bytes = bytes - 7`, ledger.UsageIsCharges,
		},
		{`UPDATE grants SET consumed = consumed + 1, remaining = remaining - 1`, `UPDATE grants SET consumed = consumed - 1, remaining = remaining + 1`, ledger.GrantIsTransfers},
		{`UPDATE organizations SET pool = pool + 1`, `UPDATE organizations SET pool = pool - 1`, ledger.GrantIsTransfers},
		{`UPDATE budgets SET used = used + 1`, `UPDATE budgets SET used = used - 1`, ledger.BudgetIsUsage},
		{
			`UPDATE statements SET document = jsonb_set(document, '{totals,granted}', '7')`,
			`UPDATE statements SET document = jsonb_set(document, '{totals,granted}', '0')`, ledger.StatementIsBook,
		},
		{`UPDATE transfers SET key = 'another'`, `UPDATE transfers SET key = 'key'`, ledger.ChainIsCharges},
		{`UPDATE links SET bytes = bytes + 1`, `UPDATE links SET bytes = bytes - 1`, ledger.ChainHolds},
	} {
		tamper(t, l, tampered.with)
		found, err := l.Integrity.Verify(t.Context(), "acme")
		if err != nil || !slices.ContainsFunc(found.Violations, func(v ledger.Violation) bool { return v.Invariant == tampered.want }) {
			t.Errorf("%s: found %+v, error %v", tampered.with, found.Violations, err)
		}
		tamper(t, l, tampered.back)
	}
}

// tamper changes stored rows of acme.
func tamper(t *testing.T, l *ledgertest.Ledger, statement string) {
	t.Helper()
	l.AsOwner(t, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, statement+` WHERE organization = 'acme'`)
		return err
	})
}

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

// What an organization, its last decision or statement was changed to is
// found by the running check once half a minute has passed, and counted.
func TestWhatWasDecidedIsComparedTwiceAMinute(t *testing.T) {
	l := ledgertest.Acme(t)
	l.Start(t, "idle", ledger.Indie)
	checker := integrity.NewChecker(integrity.CheckerConfig{
		Pool: l.Pool, Kept: ledger.DefaultRetention(), Clock: l.Now, Logger: testenv.Logger(t), Metrics: prometheus.NewRegistry(),
	})
	found := func() (all []string) {
		t.Helper()
		before := len(checker.Report().Violations)
		testenv.Must(t, checker.RunOnce(t.Context()))
		for _, v := range checker.Report().Violations[before:] {
			all = append(all, v.Invariant)
		}
		return all
	}
	if all := found(); len(all) > 0 {
		t.Fatalf("found %q", all)
	}
	for _, tampered := range []struct{ with, back, want string }{
		{`UPDATE organizations SET plans = replace(plans::text, 'indie', 'scale')::jsonb`,
			`UPDATE organizations SET plans = replace(plans::text, 'scale', 'indie')::jsonb`, ledger.StandingIsDecided},
		{`UPDATE organizations SET suspended = true WHERE organization = 'idle'`,
			`UPDATE organizations SET suspended = false WHERE organization = 'idle'`, ledger.StandingIsDecided},
		{`UPDATE organizations SET closed_through = closed_through - interval '1 month' WHERE organization = 'acme'`,
			`UPDATE organizations SET closed_through = closed_through + interval '1 month' WHERE organization = 'acme'`, ledger.StandingIsDecided},
		{`UPDATE events SET metadata = replace(metadata::text, 'time', 'someone')::json`,
			`UPDATE events SET metadata = replace(metadata::text, 'someone', 'time')::json`, ledger.DecisionsFollow},
		{`CREATE TABLE aside AS SELECT * FROM statements WHERE number = 2; DELETE FROM statements WHERE number = 2`,
			`INSERT INTO statements SELECT * FROM aside; DROP TABLE aside`, ledger.StatementsFollow},
		{`CREATE TABLE aside AS SELECT * FROM statements; DELETE FROM statements`,
			`INSERT INTO statements SELECT * FROM aside; DROP TABLE aside`, ledger.StatementsFollow},
	} {
		asOwner(t, l, tampered.with)
		if all := found(); len(all) > 0 {
			t.Errorf("%s: the next round found %q at once", tampered.with, all)
		}
		l.Pass(time.Minute)
		if all := found(); !slices.Contains(all, tampered.want) {
			t.Errorf("%s: found %q, want %q", tampered.with, all, tampered.want)
		}
		asOwner(t, l, tampered.back)
		l.Pass(time.Minute)
		if all := found(); len(all) > 0 {
			t.Errorf("%s: found %q", tampered.back, all)
		}
	}
}

func asOwner(t *testing.T, l *ledgertest.Ledger, statements string) {
	t.Helper()
	l.AsOwner(t, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Conn().PgConn().Exec(ctx, statements).ReadAll()
		return err
	})
}
