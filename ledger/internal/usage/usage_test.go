package usage_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
	"github.com/weirlog/weir/shared/testenv"
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

// What adjustments have charged by then is part of why a request was
// refused; later ones are not.
func TestRefusalsCountAdjustments(t *testing.T) {
	l := ledgertest.Acme(t)
	l.Book(t, l.NewCharge("acme", 60))
	adjust := func(bytes int64) string {
		made, err := l.Grants.Adjust(t.Context(), "acme", unitofwork.Request{}, bytes, "too little", time.Time{})
		testenv.Must(t, err)
		l.Pass(time.Minute)
		return made.ID
	}
	charged := adjust(-40)
	refusal := ledger.Refusal{Organization: "acme", Bytes: 1, Quota: 100, PeriodStart: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), Requests: 1,
		Cause: ledger.Cause{Event: "req_1", Source: ledger.FromOutcomes, At: l.Now(), Project: "project"}}
	l.Pass(time.Minute)
	adjust(-7)
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		_, err := l.Booking.Refuse(ctx, tx, l.Now(), []ledger.Refusal{refusal})
		return err
	})
	found, err := l.Usage.Refusals(t.Context(), "acme", postgres.RefusalQuery{To: l.Now(), Limit: 1})
	if err != nil || len(found) != 1 || found[0].Crossed == nil || found[0].Crossed.Reason != "adjusted" {
		t.Fatalf("%+v, error %v", found, err)
	}
	by := map[string]int64{}
	for _, share := range found[0].Crossed.UsedBy {
		by[share.By+" "+share.ID] += share.Bytes
	}
	if by["project project"] != 60 || by["adjustment "+charged] != 40 || len(found[0].Crossed.UsedBy) != 5 {
		t.Errorf("used by %v", found[0].Crossed.UsedBy)
	}
}
