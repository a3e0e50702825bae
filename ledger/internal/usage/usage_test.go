package usage_test

import (
	"context"
	"fmt"
	"slices"
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

// BenchmarkUsageOverAYear reads a year of usage of an organization with
// 50 keys, each used daily and refused occasionally.
func BenchmarkUsageOverAYear(b *testing.B) {
	l := ledgertest.New(b)
	l.Start(b, "acme", ledger.Scale)
	from := l.Now().AddDate(-1, 0, 0)
	for day := from; day.Before(l.Now()); day = day.AddDate(0, 0, 1) {
		var uses []ledger.Use
		for key := range 50 {
			for _, outcome := range []string{"accepted", "rate_limited", "rejected"}[:1+key%3] {
				uses = append(uses, ledger.Use{Organization: "acme", Hour: day.Truncate(time.Hour), Project: fmt.Sprint("prj_", key%10), Key: fmt.Sprint("key_", key),
					Environment: "prod", Outcome: outcome, Requests: 10, Entries: 100, Bytes: 10_000})
			}
		}
		l.As(b, func(ctx context.Context, tx pgx.Tx) error { return postgres.SaveUses(ctx, tx, uses) })
	}
	if _, err := l.Pool.Exec(b.Context(), `VACUUM ANALYZE usage_days`); err != nil {
		b.Fatal(err)
	}
	for name, query := range map[string]postgres.UsageQuery{
		"by month":                 {Bucket: postgres.ByMonth},
		"by month, key":            {Bucket: postgres.ByMonth, By: map[postgres.Dimension]bool{postgres.ByKey: true}},
		"by day, project":          {Bucket: postgres.ByDay, By: map[postgres.Dimension]bool{postgres.ByProject: true}},
		"by day, key, and outcome": {Bucket: postgres.ByDay, By: map[postgres.Dimension]bool{postgres.ByKey: true, postgres.ByOutcome: true}},
	} {
		query.From, query.To, query.Limit = from, l.Now(), 1001
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				if found, err := l.Usage.List(b.Context(), "acme", query); err != nil || len(found) == 0 {
					b.Fatal(len(found), err)
				}
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}
