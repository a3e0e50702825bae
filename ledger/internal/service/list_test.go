package service_test

import (
	"testing"
	"time"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/postgres"
)

// threeDays is a ledger in which acme sent 1, 2 and 3 bytes on each of three days.
func threeDays(t *testing.T) *ledgertest.Ledger {
	t.Helper()
	l := ledgertest.New(t)
	l.Start(t, "acme", ledger.Scale)
	for range 3 {
		l.Book(t, l.NewCharge("acme", 1), l.NewCharge("acme", 2), l.NewCharge("acme", 3))
		l.SetClock(l.Now().AddDate(0, 0, 1))
	}
	return l
}

// Pages of transfers together are all of them, once each, in order.
func TestPagesOfTransfers(t *testing.T) {
	l := threeDays(t)
	var sum int64
	pages := 0
	for q := (postgres.TransferQuery{From: ledgertest.November, To: ledgertest.November.AddDate(1, 0, 0), Limit: 2}); ; pages++ {
		page, err := l.Transfers(t.Context(), "acme", q)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, transfer := range page {
			if transfer.Reason == ledger.Charged {
				sum += transfer.Amount
			}
		}
		q.After = page[len(page)-1].Cursor()
	}
	if pages != 5 || sum != 18 {
		t.Errorf("%d pages, sum %d", pages, sum)
	}
}

// Pages of usage together are all days, also those of one project.
func TestPagesOfUsage(t *testing.T) {
	l := threeDays(t)
	q := postgres.UsageQuery{Bucket: postgres.ByDay, By: map[postgres.Dimension]bool{postgres.ByProject: true}, From: ledgertest.November.AddDate(0, 0, -1), To: ledgertest.November.AddDate(1, 0, 0), Limit: 2}
	first, err := l.Usage(t.Context(), "acme", q)
	if err != nil || len(first) != 2 || first[0].Bytes != 6 || first[0].Entries != 3 {
		t.Fatalf("usage %v, error %v", first, err)
	}
	q.Project, q.After = "project", postgres.UsagePlace(first[1])
	if rest, err := l.Usage(t.Context(), "acme", q); err != nil || len(rest) != 1 {
		t.Errorf("usage %v, error %v", rest, err)
	}
}

// A day of which any moment lies within the span is listed.
func TestUsageWithin(t *testing.T) {
	l := threeDays(t)
	midnight := ledgertest.November.Truncate(24 * time.Hour)
	tests := []struct {
		from, to time.Time
		days     int
	}{
		{midnight, midnight, 0},
		{midnight, midnight.Add(time.Nanosecond), 1},
		{midnight.Add(23 * time.Hour), midnight.AddDate(0, 0, 1), 1},
		{midnight, midnight.AddDate(0, 0, 2).Add(time.Hour), 3},
		{midnight, midnight.AddDate(0, 0, 2), 2},
		{midnight, midnight.AddDate(0, 0, 2).Add(time.Hour).In(time.FixedZone("", -9*3600)), 3},
	}
	for _, test := range tests {
		found, err := l.Usage(t.Context(), "acme", postgres.UsageQuery{Bucket: postgres.ByDay, From: test.from, To: test.to, Limit: 10})
		if err != nil || len(found) != test.days {
			t.Errorf("from %s to %s are %d days (%v), want %d", test.from, test.to, len(found), err, test.days)
		}
	}
}

// A statement's transfers agree with its balance.
func TestOverview(t *testing.T) {
	l := threeDays(t)
	found, err := l.Overview(t.Context(), "acme", postgres.TransferQuery{To: ledgertest.November.AddDate(1, 0, 0), Limit: 100})
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
