package postgres_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
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
	"github.com/weirlog/weir/shared/prune"
)

// threeMonths are the shortest that books may be kept.
var threeMonths = ledger.Retention{Hours: 1, Transfers: 3, Books: 3}

// Of monthly decisions only those in force outlive the books; the chain
// still verifies.
func TestPastDecisionsGo(t *testing.T) {
	l := checkedLedger{ledgertest.New(t)}
	l.Balances.Kept = threeMonths
	l.Start(t, "acme", ledger.Scale)
	l.decide(t, func(ctx context.Context, by unitofwork.Request) error {
		_, err := l.Grants.Grant(ctx, "acme", by, ledger.Grant{Amount: 7, Priority: ledger.PlanPriority})
		return err
	})
	l.subscribe(t, 1<<41, "", true)
	l.decide(t, func(ctx context.Context, by unitofwork.Request) error {
		both := []ledger.BudgetSpec{{Spender: ledger.Spender{Project: "shop"}, Bytes: 5}, {Spender: ledger.Spender{Project: "blog"}, Bytes: 5}}
		_, err := l.Budgets.SetAll(ctx, "acme", by, both)
		return err
	})
	var left []int
	for month := range 10 {
		l.aMonthOfDecisions(t)
		l.SetClock(ledgertest.November.AddDate(0, month+1, 0))
		l.AdvanceAll(t)
		if err := integrity.Seal(t.Context(), l.Pool, l.Now().Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
		l.pruneKept(t, threeMonths)
		left = append(left, l.count(t, "events"))
		l.CheckSound(t)
	}
	if most := slices.Max(left[:6]); left[3] <= left[1] || slices.Max(left) > most {
		t.Errorf("month by month %d decisions are left", left)
	}
	l.setBudget(t, "blog", 6) // the other is in force by the decision about both
	l.SetClock(ledgertest.November.AddDate(2, 0, 0))
	l.AdvanceAll(t)
	if err := integrity.Seal(t.Context(), l.Pool, l.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		l.pruneKept(t, threeMonths)
	}
	want := []string{"plan_started", "granted", "plan_changed", "budgets_changed", "suspension_changed", "budgets_changed", "advanced"}
	if found := l.decisions(t); !slices.Equal(found, want) {
		t.Errorf("years later there are %q, want %q", found, want)
	}
	l.CheckSound(t)
	l.setBudget(t, "shop", 6) // still gets the next number
}

// aMonthOfDecisions makes decisions without lasting effect, as a plan
// that is scheduled and cancelled.
func (l checkedLedger) aMonthOfDecisions(t *testing.T) {
	t.Helper()
	l.subscribe(t, 1<<40, ledger.PeriodEnd, true)
	l.subscribe(t, 1<<41, "", true)
	l.subscribe(t, 1<<41, "", false)
	l.subscribe(t, 1<<41, "", true)
	l.setBudget(t, "gone", 5)
	l.decide(t, func(ctx context.Context, by unitofwork.Request) error {
		_, err := l.Budgets.Remove(ctx, "acme", by, ledger.Spender{Project: "gone"})
		return err
	})
	l.decide(t, func(ctx context.Context, by unitofwork.Request) error {
		_, err := l.Grants.Adjust(ctx, "acme", by, -3, "", time.Time{})
		return err
	})
	l.decide(t, func(ctx context.Context, by unitofwork.Request) error {
		made, err := l.Grants.Grant(ctx, "acme", by, ledger.Grant{Amount: 9, Priority: ledger.PlanPriority})
		if err == nil {
			_, err = l.Grants.Void(ctx, "acme", by, made.ID)
		}
		return err
	})
}

func (l checkedLedger) decide(t *testing.T, decide func(ctx context.Context, by unitofwork.Request) error) {
	t.Helper()
	if err := decide(t.Context(), unitofwork.Request{Actor: "tok_1"}); err != nil {
		t.Fatal(err)
	}
}

func (l checkedLedger) subscribe(t *testing.T, quota int64, effective string, suspended bool) {
	t.Helper()
	l.decide(t, func(ctx context.Context, by unitofwork.Request) error {
		plan := ledger.Plan{Tier: ledger.Scale, Quota: quota}
		_, err := l.Plans.Subscribe(ctx, "acme", by, ledger.Subscription{Plan: plan, Effective: effective, Suspended: &suspended})
		return err
	})
}

func (l checkedLedger) setBudget(t *testing.T, project string, bytes int64) {
	t.Helper()
	l.decide(t, func(ctx context.Context, by unitofwork.Request) error {
		_, err := l.Budgets.Set(ctx, "acme", by, ledger.BudgetSpec{Spender: ledger.Spender{Project: project}, Bytes: bytes})
		return err
	})
}

// decisions returns the kinds of those left.
func (l checkedLedger) decisions(t *testing.T) (kinds []string) {
	t.Helper()
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT name FROM events ORDER BY version`)
		if err == nil {
			kinds, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		return err
	})
	for i, kind := range kinds {
		kinds[i] = strings.TrimPrefix(kind, "ledger.v1.")
	}
	return kinds
}

// pruneKept is prune with another retention.
func (l checkedLedger) pruneKept(t *testing.T, kept ledger.Retention) {
	t.Helper()
	err := prune.New(prune.Config{
		Pool: l.Pool, Tables: func(clock func() time.Time) []prune.Table { return postgres.Tables(clock, kept, erasure.Retention{}) }, Clock: l.Now,
		Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
	}).RunOnce(t.Context())
	if err != nil {
		t.Fatal(err)
	}
}
