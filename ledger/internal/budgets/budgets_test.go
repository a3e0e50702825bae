package budgets_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/budgets"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
	"github.com/weirlog/weir/shared/idempotency"
	"github.com/weirlog/weir/shared/testenv"
)

var (
	ofProject = ledger.Spender{Project: "project"}
	ofKey     = ledger.Spender{Key: "key"}
)

// budgeted sets a budget of acme.
func budgeted(t *testing.T, l *ledgertest.Ledger, of ledger.Spender, bytes int64) budgets.Budgets {
	t.Helper()
	made, err := l.Budgets.Set(t.Context(), "acme", unitofwork.Request{Actor: "tok"}, ledger.BudgetSpec{Spender: of, Bytes: bytes})
	testenv.Must(t, err)
	return made
}

// published returns acme's budgets as ingest reads them.
func published(t *testing.T, l *ledgertest.Ledger) (budgets []ledger.Budget) {
	t.Helper()
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		round, err := l.Accounts.NextRound(ctx, tx)
		if err != nil {
			return err
		}
		for _, account := range round.Accounts {
			if account.Organization.ID == "acme" {
				budgets = account.Budgets
			}
		}
		return nil
	})
	return budgets
}

// What a budget costs in the store does not grow with the others.
func TestABudgetIsStoredAlone(t *testing.T) {
	l := ledgertest.New(t)
	l.Start(t, "acme", ledger.Scale)
	var sizes []int
	for n := range 100 {
		budgeted(t, l, ledger.Spender{Project: fmt.Sprintf("project%02d", n)}, 1000)
		var size int
		l.As(t, func(ctx context.Context, tx pgx.Tx) error {
			return tx.QueryRow(ctx, `SELECT length(data::text) + length(metadata::text) FROM events ORDER BY position DESC LIMIT 1`).Scan(&size)
		})
		sizes = append(sizes, size)
	}
	if first, last := sizes[0], sizes[99]; first < 100 || last > first+100 {
		t.Errorf("the first takes %d bytes, the hundredth %d", first, last)
	}
}

// A budget counts what was used before and after it was set, in the
// charge's transaction, and is published with the account.
func TestBudgetCounts(t *testing.T) {
	l := ledgertest.New(t)
	l.Start(t, "acme", ledger.Scale)
	l.Start(t, "evil", ledger.Scale)
	l.Book(t, l.NewCharge("acme", 30), l.NewCharge("evil", 500))
	if made := budgeted(t, l, ofProject, 100); len(made.Budgets) != 1 || made.Budgets[0].Used != 30 {
		t.Fatalf("%+v", made)
	}
	other := l.NewCharge("acme", 7)
	other.Cause.Project = "other"
	events := l.Book(t, other, l.NewCharge("acme", 50), l.NewCharge("evil", 50))
	if len(events) != 2 || events[0].Kind != ledger.BudgetThresholdReached || events[1].Percent != 80 {
		t.Errorf("80 of 100 bytes: %+v", events)
	}
	budgeted(t, l, ofKey, 10)
	found := published(t, l)
	if len(found) != 2 || found[0].Spender != ofProject || found[0].Used != 80 || found[0].IsExhausted() || found[1].Used != 87 || !found[1].IsExhausted() {
		t.Errorf("published %+v", found)
	}
	l.CheckSound(t)
	if l.Events()[len(l.Events())-1] != ledger.BudgetExhausted {
		t.Errorf("a budget that is used up when it is set: %v", l.Events())
	}
	december := l.Pass(20 * 24 * time.Hour)
	if found, err := l.Budgets.List(t.Context(), "acme"); err != nil || found.Budgets[0].Used != 0 || found.Period.Start.Month() != december.Month() {
		t.Errorf("the next period: %+v, %v", found, err)
	}
	if found, err := l.Budgets.List(t.Context(), "evil"); err != nil || len(found.Budgets) > 0 {
		t.Errorf("another organization: %+v, %v", found, err)
	}
}

// A refusal exhausts a budget for every replica until it is raised. A
// removed budget is gone; its successor counts what was used.
func TestBudgetIsExhausted(t *testing.T) {
	l := ledgertest.New(t)
	l.Start(t, "acme", ledger.Scale)
	budgeted(t, l, ofProject, 100)
	l.Book(t, l.NewCharge("acme", 40))
	refusal := ledger.Refusal{Organization: "acme", Spender: ofProject, Reason: "project_budget", Bytes: 70, Remaining: 60, Quota: 100, Exhausts: true, Requests: 1,
		PeriodStart: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), Cause: ledger.Cause{Event: "req_1", Source: ledger.FromOutcomes, At: l.Now(), Project: "project"}}
	for i, want := range []int{1, 0} { // the second is a copy
		var events []ledger.Event
		l.As(t, func(ctx context.Context, tx pgx.Tx) (err error) {
			events, err = l.Booking.Refuse(ctx, tx, l.Now(), []ledger.Refusal{refusal})
			return err
		})
		if len(events) != want || want == 1 && events[0].Kind != ledger.BudgetExhausted {
			t.Errorf("refusal %d: %+v", i, events)
		}
	}
	if found := published(t, l); len(found) != 1 || !found[0].IsExhausted() {
		t.Errorf("refused: %+v", found)
	}
	if state := l.BalanceNow(t, "acme").State(); state != ledger.Active {
		t.Errorf("the organization is %s", state)
	}
	explained, err := l.Usage.Refusals(t.Context(), "acme", postgres.RefusalQuery{To: l.Now().Add(time.Hour), Limit: 1})
	if err != nil || len(explained) != 1 || explained[0].Budget != 110 || !explained[0].EndsAt.Equal(time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("explained %+v, %v", explained, err)
	}
	if made := budgeted(t, l, ofProject, 110); made.Budgets[0].IsExhausted() {
		t.Errorf("raised: %+v", made)
	}
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		events, err := l.Booking.Refuse(ctx, tx, l.Now(), []ledger.Refusal{refusal})
		if len(events) > 0 {
			t.Errorf("a copy after the raise: %+v", events)
		}
		return err
	})
	for range 2 {
		made, err := l.Budgets.Remove(t.Context(), "acme", unitofwork.Request{}, ofProject)
		if err != nil || len(made.Budgets) > 0 || len(published(t, l)) > 0 {
			t.Fatalf("removed: %+v, %v", made, err)
		}
	}
	l.Book(t, l.NewCharge("acme", 5))
	made, err := l.Budgets.SetAll(t.Context(), "acme", unitofwork.Request{}, []ledger.BudgetSpec{{Spender: ofKey, Bytes: 50}, {Spender: ofProject, Bytes: 45}})
	if err != nil || len(made.Budgets) != 2 || made.Budgets[0].Used != 45 || !made.Budgets[0].IsExhausted() || made.Budgets[1].Used != 45 || made.Budgets[1].IsExhausted() {
		t.Errorf("set again: %+v, %v", made, err)
	}
	l.CheckSound(t)
}

// A request that sets budgets applies once. Unknown spenders are refused.
func TestBudgetsAreSetOnce(t *testing.T) {
	l := ledgertest.New(t)
	l.Start(t, "acme", ledger.Scale)
	request, spec := unitofwork.Request{Actor: "tok", IdempotencyKey: "k"}, ledger.BudgetSpec{Spender: ofProject, Bytes: 100}
	first, err := l.Budgets.Set(t.Context(), "acme", request, spec)
	testenv.Must(t, err)
	budgeted(t, l, ofProject, 200)
	if again, err := l.Budgets.Set(t.Context(), "acme", request, spec); err != nil || again.Budgets[0] != first.Budgets[0] {
		t.Errorf("again: %+v, %v", again, err)
	}
	if found := published(t, l); found[0].Bytes != 200 {
		t.Errorf("%+v", found)
	}
	spec.Bytes = 7
	if _, err := l.Budgets.Set(t.Context(), "acme", request, spec); !errors.Is(err, idempotency.ErrReused) {
		t.Errorf("another request with the key: %v", err)
	}
	if _, err := l.Budgets.Set(t.Context(), "nobody", unitofwork.Request{}, spec); !errors.Is(err, ledger.ErrNoOrganization) {
		t.Errorf("nobody's: %v", err)
	}
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE budgets SET used = used + 1`)
		return err
	})
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		found, err := postgres.Verify(ctx, tx, l.Balances.Kept, l.Now())
		if len(found) != 1 || found[0].Invariant != ledger.BudgetIsUsage {
			t.Errorf("a budget that was tampered with: %+v", found)
		}
		return err
	})
}
