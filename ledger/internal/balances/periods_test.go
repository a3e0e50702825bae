package balances_test

import (
	"slices"
	"testing"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/postgres"
)

// Pages across periods make up the whole list, even where a search
// stops within a period.
func TestPagesOverPeriods(t *testing.T) {
	l := threeMonths(t)
	for _, reason := range []ledger.Reason{0, ledger.Charged, ledger.Issued} {
		q := postgres.TransferQuery{To: l.Now().AddDate(1, 0, 0), Limit: 1000, Reason: reason}
		all := pagesOf(t, l, q)
		q.Limit, q.ScanLimit = 2, 3
		if pages := pagesOf(t, l, q); len(all) < 3 || !slices.Equal(pages, all) {
			t.Errorf("reason %q: pages have %v, the list %v", reason, pages, all)
		}
	}
}

// What was left of a grant at an instant ignores later bookings, of
// this period and later ones.
func TestPoolAtOverPeriods(t *testing.T) {
	l := threeMonths(t)
	for months, left := range []int64{0, 950, 900, 850} { // granted in the first; each used 50 more than the plan
		at := ledgertest.November.AddDate(0, months, 0)
		if balance, err := l.Balances.Balance(t.Context(), "acme", at.Add(-1)); err != nil || balance.Organization.Pool != left {
			t.Errorf("at %v %d bytes were left, want %d; %v", at, balance.Organization.Pool, left, err)
		}
	}
}

// threeMonths is a ledger where acme had a grant and used more than its
// plan in each of three months.
func threeMonths(t *testing.T) *ledgertest.Ledger {
	t.Helper()
	l := ledgertest.Acme(t)
	l.GrantAcme(t, ledgertest.GrantOf(1000))
	for range 3 {
		l.Book(t, l.NewCharge("acme", 100), l.NewCharge("acme", 50))
		l.SetClock(l.Now().AddDate(0, 1, 0))
		l.AdvanceAll(t)
	}
	return l
}

// pagesOf returns the cursors of the transfers on all pages.
func pagesOf(t *testing.T, l *ledgertest.Ledger, q postgres.TransferQuery) (all []postgres.TransferCursor) {
	t.Helper()
	for {
		page, err := l.Balances.Transfers(t.Context(), "acme", q)
		if err != nil {
			t.Fatal(err)
		}
		for _, transfer := range page.Transfers {
			all = append(all, transfer.Cursor())
		}
		switch {
		case page.Next != nil:
			q.After = *page.Next
		case len(page.Transfers) == q.Limit:
			q.After = page.Transfers[len(page.Transfers)-1].Cursor()
		default:
			return all
		}
	}
}
