package bus_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/grouping/internal/groupingtest"
	sharedbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
)

const broken = `{"timestamp":"2026-11-20T12:00:00Z","level":"error","message":"m","environment":"dev","error":{"type":"E","message":"it broke"}}`

// What is sent twice counts once: a part that was produced again,
// and a request repeated with its key. A key reused for another
// body never counts, even if the key's first request had no error.
func TestCountedOnce(t *testing.T) {
	pool := open(t)
	plain := logs(broken, `{"message":"no error"}`, broken)
	keyed := logs(broken)
	keyed.Idempotency, keyed.Digest = strings.Repeat("a", 64), strings.Repeat("b", 64)
	replay, reused := keyed, keyed
	replay.Batch, reused.Batch = uuid.Must(uuid.NewV7()).String(), uuid.Must(uuid.NewV7()).String()
	reused.Digest = strings.Repeat("c", 64)
	quiet := logs(`{"message":"nothing wrong"}`)
	quiet.Idempotency, quiet.Digest = strings.Repeat("d", 64), strings.Repeat("e", 64)
	loud := logs(broken)
	loud.Idempotency, loud.Digest = quiet.Idempotency, strings.Repeat("f", 64)
	var records []sharedbus.Record
	for i, l := range []int{0, 1, 0, 2, 3, 4, 5, 1} {
		records = append(records, record([]contract.LogsAccepted{plain, keyed, replay, reused, quiet, loud}[l], int64(i)))
	}
	for _, r := range [][]sharedbus.Record{records[:3], records[3:], records} {
		if err := consume(t.Context(), pool, r...); err != nil {
			t.Fatal(err)
		}
	}
	got := groupsOf(t, pool, "acme")
	if len(got) != 1 || got[0].Count != 3 || got[0].Title != "E: it broke" || !slices.Equal(got[0].Environments, []string{"dev"}) {
		t.Errorf("groups %+v", got)
	}
}

// The errors of a request count once all its parts arrived, even
// those without errors; if it was published in part, none count.
func TestRequestsAreCountedWhole(t *testing.T) {
	pool := open(t)
	parts := func() (records []sharedbus.Record) {
		batch := uuid.Must(uuid.NewV7()).String()
		for i, line := range []string{broken, `{"message":"no error"}`, broken} {
			l := logs(line)
			l.Batch, l.Part, l.Parts, l.First = batch, i+1, 3, i
			records = append(records, record(l, int64(i)))
		}
		return records
	}
	half, whole := parts(), parts()
	for _, step := range []struct {
		records []sharedbus.Record
		groups  int
	}{{half[:2], 0}, {half[:1], 0}, {whole[:2], 0}, {whole[1:], 1}, {whole, 1}} {
		if err := consume(t.Context(), pool, step.records...); err != nil {
			t.Fatal(err)
		}
		if got := groupsOf(t, pool, "acme"); len(got) != step.groups || len(got) == 1 && got[0].Count != 2 {
			t.Errorf("groups %+v, want %d", got, step.groups)
		}
	}
}

// Entries are read by their own members. Without an environment
// they have the key's, with an unreadable time that of acceptance,
// and with an empty payload they are grouped by their message.
func TestEntries(t *testing.T) {
	pool := open(t)
	l := logs(`{"timestamp":"?","level":"warn","message":"disk is full","error":{}}`,
		`{"level":"info","message":"x","metadata":{"error":{"type":"N"}},"error":null}`)
	if err := consume(t.Context(), pool, record(l, 0)); err != nil {
		t.Fatal(err)
	}
	got := groupsOf(t, pool, "acme")
	if len(got) != 1 || got[0].Title != "disk is full" || got[0].Count != 1 || !slices.Equal(got[0].Environments, []string{"prod"}) ||
		!slices.Equal(got[0].Severities.Names(), []string{"warn"}) || got[0].FirstSeen.Sub(l.Time).Abs() > time.Millisecond {
		t.Errorf("groups %+v", got)
	}
}

// An unreadable record is reported as poison, so that the bus parks it alone.
func TestPoison(t *testing.T) {
	pool := open(t)
	poison, short, headerless := logs(broken, `{"error":{"type":"E"`), logs(broken), record(logs(broken), 3)
	short.Entries = 2
	headerless.Headers = headerless.Headers[:1]
	for _, bad := range []sharedbus.Record{record(poison, 1), record(short, 2), headerless} {
		err := consume(t.Context(), pool, record(logs(broken), 0), bad)
		if !sharedbus.IsPermanent(err) {
			t.Errorf("record %d: %v", bad.Offset, err)
		}
	}
	if err := consume(t.Context(), pool, record(logs(broken), 0)); err != nil || errors.Unwrap(err) != nil {
		t.Fatal(err)
	}
	if got := groupsOf(t, pool, "acme"); len(got) != 1 || got[0].Count != 1 {
		t.Errorf("groups %+v: what was rolled back counts", got)
	}
}

// Libraries are learned from what a project's errors have in common.
func TestOwnCodeIsLearned(t *testing.T) {
	pool := open(t)
	thrownAt := func(calls string) string {
		return `{"level":"error","error":{"type":"E","stack_trace":["` + calls + `"]}}`
	}
	var lines []string
	for i := range 64 {
		own := "at com.acme.Cart.total" + groupingtest.Letters(i+1) + "(A.java:1)"
		if i < 5 {
			own = `at org.vendor.Client.send(C.java:1)","` + own
		}
		lines = append(lines, thrownAt(own))
	}
	if err := consume(t.Context(), pool, record(logs(lines...), 0)); err != nil {
		t.Fatal(err)
	}
	if err := consume(t.Context(), pool, record(logs(thrownAt(`at org.vendor.Pool.take(P.java:1)","at com.acme.Page.show(A.java:1)`)), 1)); err != nil {
		t.Fatal(err)
	}
	if newest := groupsOf(t, pool, "acme")[0]; newest.Culprit != "com.acme.Page.show" {
		t.Errorf("the culprit is %s", newest.Culprit)
	}
}

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
