package balances_test

import (
	"testing"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/postgres"
)

// All pages together have each transfer once, in order.
func TestPagesOfTransfers(t *testing.T) {
	l := ledgertest.ThreeDays(t)
	var sum int64
	pages := 0
	for q := (postgres.TransferQuery{From: ledgertest.November, To: ledgertest.November.AddDate(1, 0, 0), Limit: 2}); ; pages++ {
		page, err := l.Balances.Transfers(t.Context(), "acme", q)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Transfers) == 0 {
			break
		}
		for _, transfer := range page.Transfers {
			if transfer.Reason == ledger.Charged {
				sum += transfer.Amount
			}
		}
		q.After = page.Transfers[len(page.Transfers)-1].Cursor()
	}
	if pages != 5 || sum != 18 {
		t.Errorf("%d pages, sum %d", pages, sum)
	}
}

// A search for something rare reads a bounded number of transfers,
// returns where it stopped, and finds the rest from there.
func TestSearchesOfTransfersAreBounded(t *testing.T) {
	l := ledgertest.ThreeDays(t)
	q := postgres.TransferQuery{To: ledgertest.November.AddDate(1, 0, 0), Limit: 100, Reason: ledger.Issued}
	all, err := l.Balances.Transfers(t.Context(), "acme", q)
	if err != nil || all.Next != nil || len(all.Transfers) == 0 {
		t.Fatal(all, err)
	}
	found, steps := 0, 0
	q.Limit, q.ScanLimit = 2, 3
	for more := true; more; steps++ {
		page, err := l.Balances.Transfers(t.Context(), "acme", q)
		if err != nil {
			t.Fatal(err)
		}
		found += len(page.Transfers)
		if more = page.Next != nil; more {
			q.After = *page.Next
		}
	}
	if found != len(all.Transfers) || steps < 3 {
		t.Errorf("%d of %d found in %d steps", found, len(all.Transfers), steps)
	}
}

// A statement's transfers agree with its balance.
func TestOverview(t *testing.T) {
	l := ledgertest.ThreeDays(t)
	found, err := l.Balances.Overview(t.Context(), "acme", postgres.TransferQuery{To: ledgertest.November.AddDate(1, 0, 0), Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	var charged int64
	for _, transfer := range found.Transfers {
		if transfer.Reason == ledger.Charged {
			charged += transfer.Amount
		}
	}
	if used := found.Balance.Book.Used(); charged != 18 || used != charged {
		t.Errorf("the transfers charge %d, the balance %d", charged, used)
	}
}
