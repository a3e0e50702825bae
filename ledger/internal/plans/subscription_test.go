package plans_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/plans"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
	"github.com/weirlog/weir/shared/testenv"
)

func subscribe(t *testing.T, l *ledgertest.Ledger, wanted ledger.Subscription) plans.Subscription {
	t.Helper()
	made, err := l.Plans.Subscribe(t.Context(), "acme", unitofwork.Request{Actor: "tok_1"}, wanted)
	testenv.Must(t, err)
	return made
}

// closings are the events of so many periods that close without other events.
func closings(periods int) []ledger.EventKind {
	return append(slices.Repeat([]ledger.EventKind{ledger.PeriodClosed}, periods), slices.Repeat([]ledger.EventKind{ledger.StatementReady}, periods)...)
}

// After a subscription, exhaustion and an upgrade the books are sound,
// and each fact is there once.
func TestUpgrade(t *testing.T) {
	l := ledgertest.Acme(t)
	l.Book(t, l.NewCharge("acme", 100))
	made := subscribe(t, l, ledger.Subscription{Plan: ledger.Plan{Tier: ledger.Scale, Quota: 400}})
	if made.Plan.Tier != ledger.Scale || made.State != ledger.Active || made.Next != nil {
		t.Errorf("subscription %+v", made)
	}
	// 10.5 of 30 days are left.
	if b := l.BalanceNow(t, "acme").Book; b.Granted() != 100+105 || b.Remaining() != 105 {
		t.Errorf("book %+v", b)
	}
	if due := l.Round(t).Accounts; len(due) != 1 || due[0].Tier != ledger.Scale || due[0].NextQuota != 400 || due[0].State != ledger.Active {
		t.Errorf("published is %+v", due)
	}
	want := append(closings(2), ledger.QuotaRestored, ledger.TierChanged)
	if got := l.Events(); !slices.Equal(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}
	l.CheckSound(t)
}

// A smaller plan waits for the period's end. Subscribing to the current
// plan cancels it.
func TestDowngrade(t *testing.T) {
	l := ledgertest.Acme(t)
	small := ledger.Subscription{Plan: ledger.Plan{Tier: ledger.Indie, Quota: 40}}
	december := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	for _, step := range []struct {
		wanted    ledger.Subscription
		scheduled int64 // its quota
	}{
		{small, 40},
		{small, 40},
		{ledger.Subscription{Plan: ledger.Plan{Tier: ledger.Indie}}, 0},
		{ledger.Subscription{Plan: ledger.Plan{Tier: ledger.Indie, Quota: 30}}, 30},
		{small, 40},
	} {
		made := subscribe(t, l, step.wanted)
		if scheduled := made.Next != nil; scheduled != (step.scheduled > 0) || scheduled && (made.Next.Terms.Quota != step.scheduled || !made.Next.Plan.From.Equal(december)) {
			t.Fatalf("after %+v: next %+v", step.wanted.Plan, made.Next)
		}
	}
	var refusal ledger.Invalid
	small.Effective = ledger.Now
	if _, err := l.Plans.Subscribe(t.Context(), "acme", unitofwork.Request{}, small); !errors.As(err, &refusal) || refusal.Field != "effective" {
		t.Errorf("error %v", err)
	}
	l.SetClock(december.Add(2 * time.Minute))
	l.AdvanceAll(t)
	if b := l.BalanceNow(t, "acme"); b.Book.Granted() != 40 {
		t.Errorf("in December: %+v", b.Book)
	}
	l.CheckSound(t)
}
