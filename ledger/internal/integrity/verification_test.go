package integrity_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
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
