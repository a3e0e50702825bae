package accounts_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/accounts"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
	"github.com/weirlog/weir/shared/pg"
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
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	l := ledgertest.On(pool)
	l.Start(t, "acme", ledger.Indie)
	if version := l.Round(t).Accounts[0].Version; version < before || version > time.Now().Add(time.Minute).UnixMicro() {
		t.Errorf("version %d, want one of the time %d", version, before)
	}
}

// Changed terms of a tier make every account due once, with its new
// limit and next quota.
func TestNewTermsRepublish(t *testing.T) {
	l := ledgertest.New(t)
	l.Start(t, "acme", ledger.Indie)
	republish := func() []int64 {
		l.As(t, l.Accounts.RepublishOnNewTerms)
		round := l.Round(t)
		markPublished(t, l, round)
		var next []int64
		for _, account := range round.Accounts {
			next = append(next, account.NextQuota)
		}
		return next
	}
	republish()
	if due := republish(); len(due) != 0 {
		t.Errorf("the same terms made accounts due: %v", due)
	}
	l.Work.Rules.Tiers[ledger.Indie] = ledger.Terms{Quota: 500, RequestsPerMinute: 7, RetentionDays: 7}
	if due := republish(); len(due) != 1 || due[0] != 500 {
		t.Errorf("next quotas %v, want 500", due)
	}
}

// A ledger that first publishes retention publishes all accounts again,
// with versions that replace the old.
func TestRetentionIsPublishedAnew(t *testing.T) {
	l := ledgertest.New(t)
	l.Start(t, "acme", ledger.Indie)
	l.As(t, l.Accounts.RepublishOnNewTerms)
	before := l.Round(t)
	markPublished(t, l, before)
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE published_terms SET terms = (SELECT jsonb_object_agg(key, value - 'RetentionDays') FROM jsonb_each(terms))`)
		return err
	})
	l.As(t, l.Accounts.RepublishOnNewTerms)
	anew := l.Round(t)
	if len(anew.Accounts) != 1 || anew.Accounts[0].RetentionDays != l.Work.Rules.Tiers[ledger.Indie].RetentionDays ||
		anew.Accounts[0].Version <= before.Accounts[0].Version {
		t.Errorf("published %+v, want one with a retention, newer than %+v", anew.Accounts, before.Accounts)
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
