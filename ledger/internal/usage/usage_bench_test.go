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
)

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
