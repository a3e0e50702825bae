package bus_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/grouping/internal/groupingtest"
	sharedbus "github.com/weirlog/weir/shared/bus"
)

// tiny is the smallest real error. Each n has its own type.
func tiny(n int) string {
	return `{"timestamp":"2026-11-20T12:00:00Z","level":"error","message":"m","error":{"type":"Flood` + groupingtest.Letters(n+1) + `"}}`
}

// flood is one request of new types, numbered
// from first, with ids as long as real ones.
func flood(first, n int) sharedbus.Record {
	lines := make([]string, n)
	for i := range lines {
		lines[i] = tiny(first + i)
	}
	l := logs(lines...)
	l.Organization, l.Project = "0193a1b2-0000-7000-8000-000000000001", "0193a1b2-0000-7000-8000-000000000002"
	l.Time = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	return record(l, int64(first))
}

// sizes are the bytes of each table with its indexes and long values.
func sizes(t testing.TB, pool *pgxpool.Pool) (total int64, each string) {
	t.Helper()
	for _, table := range []string{"error_groups", "group_hashes", "occurrences", "facts", "group_budgets"} {
		var n int64
		if err := pool.QueryRow(t.Context(), `SELECT coalesce(pg_total_relation_size(to_regclass($1)), 0)`, table).Scan(&n); err != nil {
			t.Fatal(err)
		}
		total, each = total+n, each+fmt.Sprintf(" %s %d", table, n)
	}
	return total, strings.TrimSpace(each)
}

// A new group costs a bounded number of bytes. A flood
// of unique types, in requests of 1,000, grows the
// database by a thousand groups an hour and no more.
func TestGrowth(t *testing.T) {
	const perRequest, requests, budget, perGroup = 1000, 20, 1000, 3000
	pool := open(t)
	before, _ := sizes(t, pool)
	var charged int64
	for i := range requests {
		r := flood(i*perRequest, perRequest)
		charged += int64(len(r.Value) - perRequest)
		if err := consumeWithin(t.Context(), pool, budget, r); err != nil {
			t.Fatal(err)
		}
		total, each := sizes(t, pool)
		if grown := total - before; grown > budget*perGroup {
			t.Fatalf("%d charged bytes have grown the database by %d: %s", charged, grown, each)
		} else if i == 0 || i == requests-1 {
			t.Logf("%d charged bytes have grown the database by %d, %.1f each: %s", charged, grown, float64(grown)/float64(charged), each)
		}
	}
}
