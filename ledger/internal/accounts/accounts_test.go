package accounts_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/accounts"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

func markPublished(t testing.TB, l *ledgertest.Ledger, round accounts.Round) {
	t.Helper()
	l.As(t, func(ctx context.Context, tx pgx.Tx) error { return l.Accounts.MarkPublished(ctx, tx, round) })
}

// A change after a round was read stays due when the round is marked as
// published. Versions only grow.
func TestRoundsMissNothing(t *testing.T) {
	l := ledgertest.New(t)
	l.Start(t, "acme", ledger.Indie)
	first := l.Round(t)
	l.Book(t, l.NewCharge("acme", 10))
	markPublished(t, l, first)
	second := l.Round(t)
	if len(second.Accounts) != 1 || second.Accounts[0].Book.Used() != 10 || second.Accounts[0].Version <= first.Accounts[0].Version {
		t.Errorf("after %+v came %+v", first, second)
	}
	markPublished(t, l, second)
	if third := l.Round(t); len(third.Accounts) != 0 {
		t.Errorf("nothing happened, but due is %+v", third)
	}
}

// Readers ignore older versions. A schema that was dropped and filled
// again from the log has higher ones: versions start at the time, and
// no ledger publishes a million states a second.
func TestVersionsOutliveTheSchema(t *testing.T) {
	before := time.Now().UnixMicro()
	pool, err := pg.OpenMigrated(t.Context(), postgrestest.URL(t), postgres.Schema, postgres.Migrations()...)
	testenv.Must(t, err)
	t.Cleanup(pool.Close)
	l := ledgertest.On(t, pool)
	l.Start(t, "acme", ledger.Indie)
	if version := l.Round(t).Accounts[0].Version; version < before || version > time.Now().Add(time.Minute).UnixMicro() {
		t.Errorf("version %d, want one of the time %d", version, before)
	}
}

// When what a tier allows has changed, its organizations follow: their
// accounts are due once, with the new limit and next quota.
func TestNewTermsRepublish(t *testing.T) {
	l := ledgertest.New(t)
	l.Start(t, "acme", ledger.Indie)
	l.Start(t, "globex", ledger.Scale)
	l.AdvanceAll(t)
	followed := func() (due []string) {
		if _, err := l.Plans.Follow(t.Context(), l.Pool); err != nil {
			t.Fatal(err)
		}
		round := l.Round(t)
		markPublished(t, l, round)
		for _, account := range round.Accounts {
			due = append(due, fmt.Sprint(account.Organization.ID, " ", account.RequestsPerMinute, " ", account.RetentionDays, " ", account.NextQuota, " ", account.Book.Allowance()))
		}
		return due
	}
	followed()
	if due := followed(); len(due) != 0 {
		t.Errorf("the same terms made accounts due: %v", due)
	}
	l.SetTiers(t, ledger.Tiers{ledger.Indie: {Quota: 500, RequestsPerMinute: 7, RetentionDays: 7}, ledger.Scale: {Quota: 1 << 40, RequestsPerMinute: 1800}})
	if due := fmt.Sprint(followed()); due != "[acme 7 7 500 100]" {
		t.Errorf("due %s, want acme with its allowance and the new terms", due)
	}
	if due := followed(); len(due) != 0 {
		t.Errorf("followed terms made accounts due again: %v", due)
	}
}

// A raise shows in the account even if withdrawn before the round:
// earlier refusals are outdated.
func TestRaisesAreCounted(t *testing.T) {
	l := ledgertest.Acme(t)
	before := l.Round(t).Accounts[0].Book
	granted := l.GrantAcme(t, ledgertest.GrantOf(50))
	if _, err := l.Grants.Void(t.Context(), "acme", unitofwork.Request{}, granted.ID); err != nil {
		t.Fatal(err)
	}
	after := l.Round(t).Accounts[0].Book
	if after.Allowance() != before.Allowance() || before.Raises != 1 || after.Raises != 2 {
		t.Errorf("%d bytes and %d raises, then %d and %d", before.Allowance(), before.Raises, after.Allowance(), after.Raises)
	}
}
