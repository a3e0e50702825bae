package ingest_test

import (
	"testing"
	"time"

	"github.com/weirlog/weir/ingest"
)

var shop, key = ingest.Spender{Project: "shop"}, ingest.Spender{Key: "k"}

// budgeted is an account of 1,000 bytes with budgets.
func budgeted(version int64, budgets ...ingest.Budget) ingest.Account {
	a := account(1000, 0)
	a.Version, a.Budgets = version, budgets
	return a
}

func newBudgets(a ingest.Account) *ingest.Budgets {
	b := &ingest.Budgets{}
	b.Apply(a, nil)
	return b
}

// A request passes while the budgets of its project and its key have
// enough left. The first that exceeds one exhausts it and takes nothing
// from the other.
func TestBudgetsExhaust(t *testing.T) {
	now := november.Add(time.Hour)
	b := newBudgets(budgeted(1, ingest.Budget{Spender: shop, Limit: 100, Used: 40}, ingest.Budget{Spender: key, Limit: 50}))
	r, verdict, _ := b.Reserve("shop", "k", now, 50, (*ingest.Quota).Reserve)
	if verdict != ingest.Admitted {
		t.Fatal(verdict)
	}
	r.Published(0, 5)
	if status := b.Check("shop", "k", now); status == nil || status.Spender != key || status.Remaining != 0 {
		t.Fatalf("the key has used its budget: %+v", status)
	}
	if status := b.Check("shop", "other", now); status != nil {
		t.Fatalf("another key of the project: %+v", status)
	}
	if _, verdict, status := b.Reserve("shop", "other", now, 11, (*ingest.Quota).Reserve); verdict != ingest.Exhausted || status.Spender != shop || status.Remaining != 10 {
		t.Fatalf("the project has 10 left: %v %+v", verdict, status)
	}
	if _, verdict, _ := b.Reserve("shop", "other", now, 1, (*ingest.Quota).Reserve); verdict != ingest.Exhausted {
		t.Fatalf("a small one behind it: %v", verdict)
	}
	if _, verdict, _ := b.Reserve("blog", "other", now, 1000, (*ingest.Quota).Reserve); verdict != ingest.Admitted {
		t.Fatalf("another project: %v", verdict)
	}
	if status := b.Check("shop", "k", december); status != nil {
		t.Fatalf("the next period: %+v", status)
	}
}

// A request that one budget refuses reserves nothing of the other.
func TestRefusedByOneBudget(t *testing.T) {
	now := november.Add(time.Hour)
	b := newBudgets(budgeted(1, ingest.Budget{Spender: shop, Limit: 100}, ingest.Budget{Spender: key, Limit: 50}))
	for range 3 {
		if _, verdict, status := b.Reserve("shop", "k", now, 60, (*ingest.Quota).Try); verdict != ingest.Exhausted || status.Spender != key {
			t.Fatalf("%v %+v", verdict, status)
		}
	}
	if _, verdict, status := b.Reserve("shop", "other", now, 100, (*ingest.Quota).Try); verdict != ingest.Admitted {
		t.Fatalf("%v %+v", verdict, status)
	}
}

// Budgets follow the account: raised, removed, or exhausted by the
// ledger. Requests under way stay reserved.
func TestBudgetsFollowTheAccount(t *testing.T) {
	now := november.Add(time.Hour)
	b := newBudgets(budgeted(1, ingest.Budget{Spender: shop, Limit: 100}, ingest.Budget{Spender: key, Limit: 50, Exhausted: true}))
	if status := b.Check("shop", "k", now); status == nil || status.Spender != key {
		t.Fatalf("latched by the ledger: %+v", status)
	}
	if _, verdict, _ := b.Reserve("shop", "other", now, 80, (*ingest.Quota).Reserve); verdict != ingest.Admitted {
		t.Fatal(verdict)
	}
	b.Apply(budgeted(2, ingest.Budget{Spender: shop, Limit: 110}), nil)
	if status := b.Check("shop", "k", now); status != nil {
		t.Fatalf("a budget that is gone: %+v", status)
	}
	if _, verdict, _ := b.Reserve("shop", "k", now, 31, (*ingest.Quota).Reserve); verdict != ingest.Contended {
		t.Fatalf("30 of 110 are left: %v", verdict)
	}
	if _, verdict, _ := b.Reserve("shop", "k", now, 30, (*ingest.Quota).Reserve); verdict != ingest.Admitted {
		t.Fatalf("30 of 110 are left: %v", verdict)
	}
	b.Apply(budgeted(3), nil)
	if held, verdict, _ := b.Reserve("shop", "k", now, 1000, (*ingest.Quota).Reserve); verdict != ingest.Admitted || held != nil {
		t.Fatalf("none is left: %v", verdict)
	}
}

// A request found in the log counts in its sender's budgets until the
// ledger has counted it; one of unknown outcome until it is resolved.
func TestBudgetsCountTheLog(t *testing.T) {
	now := november.Add(time.Hour)
	b := newBudgets(budgeted(1, ingest.Budget{Spender: shop, Limit: 100}))
	b.Found(ingest.Charge{Project: "shop", Key: "k", At: now, Bytes: 60, Partition: 1, Offset: 7})
	b.Found(ingest.Charge{Project: "blog", Key: "k", At: now, Bytes: 60, Partition: 1, Offset: 8})
	if _, verdict, _ := b.Reserve("shop", "k", now, 41, (*ingest.Quota).Try); verdict != ingest.Contended {
		t.Fatal(verdict)
	}
	b.Mark(ingest.Positions{1: 8})
	r, verdict, _ := b.Reserve("shop", "k", now, 100, (*ingest.Quota).Try)
	if verdict != ingest.Admitted {
		t.Fatal(verdict)
	}
	r.Lost(now)
	if !b.Incomplete(now.Add(time.Minute)) {
		t.Fatal("nothing is in doubt")
	}
	b.Resolve(now.Add(time.Minute), ingest.Positions{1: 9})
	b.Mark(ingest.Positions{1: 9})
	if _, verdict, _ := b.Reserve("shop", "k", now, 100, (*ingest.Quota).Try); verdict != ingest.Admitted {
		t.Fatalf("resolved: %v", verdict)
	}
}

// A budget that was removed and set again is a new one: refusals by the
// old don't exhaust it, even in one account.
func TestBudgetSetAgain(t *testing.T) {
	now := november.Add(time.Hour)
	b := newBudgets(budgeted(1, ingest.Budget{Spender: shop, Limit: 100, Used: 40, Since: 1}))
	held, _, _ := b.Reserve("shop", "k", now, 50, (*ingest.Quota).Reserve)
	if _, verdict, _ := b.Reserve("shop", "k", now, 70, (*ingest.Quota).Reserve); verdict != ingest.Exhausted {
		t.Fatal(verdict)
	}
	b.Apply(budgeted(2, ingest.Budget{Spender: shop, Limit: 100, Used: 40, Since: 1}), nil)
	if status := b.Check("shop", "k", now); status == nil {
		t.Fatal("the same budget is restored")
	}
	b.Apply(budgeted(3, ingest.Budget{Spender: shop, Limit: 100, Used: 40, Since: 3}), nil)
	if status := b.Check("shop", "k", now); status != nil {
		t.Fatalf("another budget is exhausted: %+v", status)
	}
	held.Published(0, 5)
	if _, verdict, _ := b.Reserve("shop", "k", now, 11, (*ingest.Quota).Try); verdict != ingest.Exhausted {
		t.Errorf("with 10 bytes left: %v", verdict)
	}
}
