package usage_test

import (
	"testing"
	"time"

	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/postgres"
)

// All pages of usage together have every day, of one project too.
func TestPagesOfUsage(t *testing.T) {
	l := ledgertest.ThreeDays(t)
	q := postgres.UsageQuery{Bucket: postgres.ByDay, By: map[postgres.Dimension]bool{postgres.ByProject: true}, From: ledgertest.November.AddDate(0, 0, -1), To: ledgertest.November.AddDate(1, 0, 0), Limit: 2}
	first, err := l.Usage.List(t.Context(), "acme", q)
	if err != nil || len(first) != 2 || first[0].Bytes != 6 || first[0].Entries != 3 {
		t.Fatalf("usage %v, error %v", first, err)
	}
	q.Project, q.After = "project", postgres.UsagePlace(first[1])
	if rest, err := l.Usage.List(t.Context(), "acme", q); err != nil || len(rest) != 1 {
		t.Errorf("usage %v, error %v", rest, err)
	}
}

// A day that overlaps the span is listed.
func TestUsageWithin(t *testing.T) {
	l := ledgertest.ThreeDays(t)
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
		found, err := l.Usage.List(t.Context(), "acme", postgres.UsageQuery{Bucket: postgres.ByDay, From: test.from, To: test.to, Limit: 10})
		if err != nil || len(found) != test.days {
			t.Errorf("from %s to %s are %d days (%v), want %d", test.from, test.to, len(found), err, test.days)
		}
	}
}
