package inbox_test

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/inbox"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/prune"
	"github.com/weirlog/weir/shared/testenv"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const (
	fresh     = inbox.Fresh
	partial   = inbox.Partial
	duplicate = inbox.Duplicate
	replayed  = inbox.Replayed
	reused    = inbox.Reused
)

func open(t *testing.T) *pgxpool.Pool {
	t.Helper()
	return pgtest.Open(t, "inboxtest", pg.Partitions(), inbox.Migrations(), bus.Migrations())
}

// openOwned opens it as its owner, for tests that change the past.
func openOwned(t *testing.T) *pgxpool.Pool {
	t.Helper()
	return pgtest.OpenOwned(t, "inboxtest", pg.Partitions(), inbox.Migrations(), bus.Migrations())
}

func filter(t *testing.T, pool *pgxpool.Pool, records ...contract.LogsAccepted) (verdicts []inbox.Verdict) {
	t.Helper()
	verdicts, _ = take(t, pool, records...)
	return verdicts
}

// take is filter, and returns the parts of whole requests as a
// consumer gets them.
func take(t *testing.T, pool *pgxpool.Pool, records ...contract.LogsAccepted) (verdicts []inbox.Verdict, parts []string) {
	t.Helper()
	err := pg.InTxAsSystem(t.Context(), pool, func(tx pgx.Tx) error {
		judged, err := inbox.Filter(t.Context(), tx, records)
		if err != nil {
			return err
		}
		verdicts = judged.Verdicts
		for i, verdict := range verdicts {
			if verdict != fresh {
				continue
			}
			err = errors.Join(err, judged.Whole(t.Context(), tx, i, func(part contract.LogsAccepted) error {
				parts = append(parts, part.ID()[7:8]+part.ID()[36:]+" "+string(part.Lines))
				return nil
			}))
		}
		return err
	})
	testenv.Must(t, err)
	return verdicts, parts
}

func batch(digit string) string { return "0000000" + digit + "-0000-7000-8000-000000000000" }

func record(digit string, part int) contract.LogsAccepted {
	return contract.LogsAccepted{
		Batch: batch(digit), Part: part, Parts: 1, Organization: "acme", Project: "shop", Environment: "prod", Key: "key", Source: "test",
		Time: noon, Entries: 1, Bytes: 1, Lines: []byte(fmt.Sprint("line ", part)),
	}
}

// parts returns some of the three parts of a request.
func parts(digit string, numbers ...int) (records []contract.LogsAccepted) {
	for _, number := range numbers {
		r := record(digit, number)
		r.Parts = 3
		records = append(records, r)
	}
	return records
}

// keyed gives parts an idempotency key.
func keyed(key, digest string, at time.Time, records ...contract.LogsAccepted) []contract.LogsAccepted {
	for i := range records {
		records[i].Idempotency, records[i].Digest, records[i].Time = key, digest, at
	}
	return records
}

func idempotent(digit, key, digest string, at time.Time) contract.LogsAccepted {
	r := record(digit, 1)
	r.Idempotency, r.Digest, r.Time = key, digest, at
	return r
}

// A batch has its effect once, whether its copies come together or
// in separate transactions.
func TestBatchesCountOnce(t *testing.T) {
	pool := open(t)
	first := filter(t, pool, record("1", 1), record("2", 1), record("1", 1))
	if want := []inbox.Verdict{fresh, fresh, duplicate}; !slices.Equal(first, want) {
		t.Errorf("verdicts = %v, want %v", first, want)
	}
	second := filter(t, pool, record("1", 1), record("3", 1))
	if want := []inbox.Verdict{duplicate, fresh}; !slices.Equal(second, want) {
		t.Errorf("verdicts = %v, want %v", second, want)
	}
}

// A request of several parts has its effect once and whole, with its
// last part, however they come and how often.
func TestRequestsAreWhole(t *testing.T) {
	all := []string{"1/1 line 1", "1/2 line 2", "1/3 line 3"}
	for _, test := range []struct {
		name    string
		batches [][]contract.LogsAccepted
		want    [][]inbox.Verdict
	}{
		{"together", [][]contract.LogsAccepted{parts("1", 1, 2, 3)}, [][]inbox.Verdict{{partial, partial, fresh}}},
		{"one by one", [][]contract.LogsAccepted{parts("1", 1), parts("1", 2), parts("1", 3)}, [][]inbox.Verdict{{partial}, {partial}, {fresh}}},
		{"disordered", [][]contract.LogsAccepted{parts("1", 3, 1), parts("1", 2)}, [][]inbox.Verdict{{partial, partial}, {fresh}}},
		{"the middle late", [][]contract.LogsAccepted{parts("1", 1, 3), parts("2", 1), parts("1", 2)}, [][]inbox.Verdict{{partial, partial}, {partial}, {fresh}}},
		{
			"some twice", [][]contract.LogsAccepted{parts("1", 1, 1), parts("1", 1, 2), parts("1", 2, 3, 3), parts("1", 1, 2, 3)},
			[][]inbox.Verdict{{partial, duplicate}, {duplicate, partial}, {duplicate, fresh, duplicate}, {duplicate, duplicate, duplicate}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			pool := open(t)
			var effect []string
			for i, records := range test.batches {
				verdicts, whole := take(t, pool, records...)
				if effect = append(effect, whole...); !slices.Equal(verdicts, test.want[i]) {
					t.Errorf("step %d: verdicts %v, want %v", i, verdicts, test.want[i])
				}
			}
			if !slices.Equal(effect, all) {
				t.Errorf("the effect is that of %q, want %q", effect, all)
			}
			if left := heldOf(t, pool, "1"); left != 0 {
				t.Errorf("%d parts are kept", left)
			}
		})
	}
}

// Requests of many parts are read in pages, in their order.
func TestManyParts(t *testing.T) {
	const n = 30
	pool := open(t)
	var effect []string
	for i := range n {
		r := record("1", i+1)
		r.Parts = n
		_, whole := take(t, pool, r)
		effect = append(effect, whole...)
	}
	for i, part := range effect {
		if want := fmt.Sprintf("1/%d line %d", i+1, i+1); part != want {
			t.Errorf("part %d is %q, want %q", i, part, want)
		}
	}
	if len(effect) != n {
		t.Errorf("%d parts have an effect, want %d", len(effect), n)
	}
}

// Consumers without need for lines keep none.
func TestPartsWithoutLines(t *testing.T) {
	pool := open(t)
	records := parts("1", 1, 2, 3)
	for i := range records {
		records[i].Lines = nil
	}
	take(t, pool, records[:2]...)
	if _, whole := take(t, pool, records[2]); !slices.Equal(whole, []string{"1/1 ", "1/2 ", "1/3 "}) {
		t.Errorf("got %q", whole)
	}
}

func asSystem(t *testing.T, pool *pgxpool.Pool, statement string) {
	t.Helper()
	err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		err := pg.AsSystem(t.Context(), tx)
		if err == nil {
			_, err = tx.Exec(t.Context(), statement)
		}
		return err
	})
	testenv.Must(t, err)
}

func heldOf(t *testing.T, pool *pgxpool.Pool, digit string) (n int) {
	t.Helper()
	err := pg.InTxAsSystem(t.Context(), pool, func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `SELECT count(*) FROM inbox_held WHERE batch = $1`, batch(digit)).Scan(&n)
	})
	testenv.Must(t, err)
	return n
}

// A rollback forgets what its transaction saw.
func TestRollbackForgets(t *testing.T) {
	pool := open(t)
	tx, err := pool.Begin(t.Context())
	testenv.Must(t, err)
	testenv.Must(t, pg.AsSystem(t.Context(), tx))
	if _, err := inbox.Filter(t.Context(), tx, []contract.LogsAccepted{record("1", 1)}); err != nil {
		t.Fatal(err)
	}
	testenv.Must(t, tx.Rollback(t.Context()))
	if got := filter(t, pool, record("1", 1)); got[0] != fresh {
		t.Errorf("verdict = %v, want fresh", got[0])
	}
}

// An idempotency key's first batch counts for 24 hours: others with the
// same body are replays, with another body reuses. Afterwards the key
// is free again.
func TestIdempotencyKeys(t *testing.T) {
	pool := open(t)
	steps := []struct {
		name   string
		record contract.LogsAccepted
		want   inbox.Verdict
	}{
		{"the first", idempotent("1", "key", "same", noon), fresh},
		{"its copy", idempotent("1", "key", "same", noon), duplicate},
		{"the same request again", idempotent("2", "key", "same", noon.Add(time.Minute)), replayed},
		{"accepted a little earlier, by another replica", idempotent("3", "key", "same", noon.Add(-time.Second)), replayed},
		{"another body", idempotent("4", "key", "other", noon.Add(time.Hour)), reused},
		{"another key", idempotent("5", "key 2", "other", noon.Add(time.Hour)), fresh},
		{"just within the day", idempotent("6", "key", "same", noon.Add(24*time.Hour-time.Microsecond)), replayed},
		{"a day later", idempotent("7", "key", "other", noon.Add(24*time.Hour)), fresh},
		{"again", idempotent("8", "key", "same", noon.Add(25*time.Hour)), reused},
	}
	for _, step := range steps {
		if got := filter(t, pool, step.record); got[0] != step.want {
			t.Errorf("%s: verdict = %v, want %v", step.name, got[0], step.want)
		}
	}
	together := open(t)
	var records []contract.LogsAccepted
	var want []inbox.Verdict
	for _, step := range steps {
		records, want = append(records, step.record), append(want, step.want)
	}
	if got := filter(t, together, records...); !slices.Equal(got, want) {
		t.Errorf("in one transaction: verdicts = %v, want %v", got, want)
	}
}

// The first whole request of an idempotency key counts. One published
// in part does not block a whole one, with the same body, past
// midnight, or with another; if the rest of it comes later, it is a
// replay or a reuse.
func TestAHalfPublishedRequestIsSentAgain(t *testing.T) {
	for _, test := range []struct {
		digest string
		after  time.Duration
		late   inbox.Verdict
	}{{"same", 13 * time.Hour, replayed}, {"other", time.Minute, reused}} {
		pool := open(t)
		half := filter(t, pool, keyed("key", "same", noon, parts("1", 1, 2)...)...)
		if want := []inbox.Verdict{partial, partial}; !slices.Equal(half, want) {
			t.Errorf("half: verdicts = %v, want %v", half, want)
		}
		again, whole := take(t, pool, keyed("key", test.digest, noon.Add(test.after), parts("2", 1, 2, 3)...)...)
		if want := []inbox.Verdict{partial, partial, fresh}; !slices.Equal(again, want) || len(whole) != 3 {
			t.Errorf("sent again: verdicts = %v, want %v; the effect is that of %q", again, want, whole)
		}
		late := filter(t, pool, keyed("key", "same", noon, parts("1", 3)...)...)
		if want := []inbox.Verdict{test.late}; !slices.Equal(late, want) || heldOf(t, pool, "1") != 0 {
			t.Errorf("the rest: verdicts = %v, want %v; %d parts are kept", late, want, heldOf(t, pool, "1"))
		}
	}
}

// Which of two requests with one key counts does not depend on how
// their parts share transactions.
func TestOverlappingRequestsOfOneKey(t *testing.T) {
	log := slices.Concat(
		keyed("key", "same", noon, parts("1", 1)...), keyed("key", "same", noon.Add(time.Second), parts("2", 1, 2)...),
		keyed("key", "same", noon, parts("1", 2, 3)...), keyed("key", "same", noon.Add(time.Second), parts("2", 3)...),
	)
	want := []inbox.Verdict{partial, partial, partial, partial, fresh, replayed}
	for at := range log {
		pool := open(t)
		if got := append(filter(t, pool, log[:at]...), filter(t, pool, log[at:]...)...); !slices.Equal(got, want) {
			t.Errorf("divided at %d: verdicts = %v, want %v", at, got, want)
		}
		if left := heldOf(t, pool, "1") + heldOf(t, pool, "2"); left != 0 {
			t.Errorf("divided at %d: %d parts are kept", at, left)
		}
	}
}

// Two consumers with copies of one part (two offsets in two partitions)
// allow one effect.
func TestCopiesRace(t *testing.T) {
	pool := open(t)
	var mu sync.Mutex
	counts := map[inbox.Verdict]int{}
	var group sync.WaitGroup
	for range 6 {
		group.Go(func() {
			verdict := filter(t, pool, record("1", 1))[0]
			mu.Lock()
			defer mu.Unlock()
			counts[verdict]++
		})
	}
	group.Wait()
	if counts[fresh] != 1 || counts[duplicate] != 5 {
		t.Errorf("verdicts = %v, want one fresh and five duplicates", counts)
	}
}

// Rows older than a week are removed, and no younger ones.
func TestTables(t *testing.T) {
	pool := openOwned(t)
	old, young := idempotent("1", "old", "d", noon.AddDate(0, 0, -9)), idempotent("2", "young", "d", noon)
	filter(t, pool, old, young)
	forgotten, today := keyed("", "", noon.AddDate(0, 0, -9), parts("3", 1)...), keyed("", "", noon.AddDate(0, 0, -9), parts("4", 1)...)
	filter(t, pool, slices.Concat(forgotten, today, parts("5", 1))...)
	asSystem(t, pool, `UPDATE inbox_held SET held_at = '`+noon.AddDate(0, 0, -2).Format(time.RFC3339)+`' WHERE batch = '`+batch("3")+`'`)
	metrics := prometheus.NewRegistry()
	clock := func() time.Time { return noon }
	pruner := prune.New(prune.Config{Pool: pool, Tables: inbox.Tables, Clock: clock, Metrics: metrics, Logger: slog.New(slog.DiscardHandler)})
	testenv.Must(t, pruner.RunOnce(t.Context()))
	if err := testutil.GatherAndCompare(metrics, strings.NewReader(`
# HELP weir_prune_oldest_age_seconds Age of the oldest row that the last run left in a table; 0 if it left none.
# TYPE weir_prune_oldest_age_seconds gauge
weir_prune_oldest_age_seconds{table="inbox"} 43200
weir_prune_oldest_age_seconds{table="inbox_held"} 777600
weir_prune_oldest_age_seconds{table="inbox_idempotency"} 0
# HELP weir_pruned_total What was removed from a table beyond its bound: rows, or days of a partitioned table.
# TYPE weir_pruned_total counter
weir_pruned_total{table="inbox"} 1
weir_pruned_total{table="inbox_held"} 1
weir_pruned_total{table="inbox_idempotency"} 1
`), "weir_prune_oldest_age_seconds", "weir_pruned_total"); err != nil {
		t.Error(err)
	}
	if got := filter(t, pool, old, young); !slices.Equal(got, []inbox.Verdict{fresh, duplicate}) {
		t.Errorf("verdicts = %v, want only the old one removed", got)
	}
}

// With a clock a month ahead, an inbox keeps the week before its newest record.
func TestTablesUnderAClockThatIsAhead(t *testing.T) {
	pool := open(t)
	old, young := idempotent("1", "old", "d", noon.AddDate(0, 0, -9)), idempotent("2", "young", "d", noon)
	copied := young
	copied.Batch = batch("3")
	filter(t, pool, old, young)
	ahead := func() time.Time { return noon.AddDate(0, 1, 0) }
	pruner := prune.New(prune.Config{
		Pool: pool, Tables: inbox.Tables, Clock: ahead, Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
	})
	testenv.Must(t, pruner.RunOnce(t.Context()))
	if got := filter(t, pool, old, young, copied); !slices.Equal(got, []inbox.Verdict{fresh, duplicate, replayed}) {
		t.Errorf("verdicts = %v, want only the old one removed", got)
	}
}

// A different record of a part already seen is no copy of it, whether both
// come together or not.
func TestAnotherRecordOfAPartConflicts(t *testing.T) {
	pool := open(t)
	first, other := record("1", 1), record("1", 1)
	other.Bytes++
	if got := filter(t, pool, first, other, first); !slices.Equal(got, []inbox.Verdict{fresh, inbox.Conflicting, duplicate}) {
		t.Errorf("together: %v", got)
	}
	if got := filter(t, pool, first, other); !slices.Equal(got, []inbox.Verdict{duplicate, inbox.Conflicting}) {
		t.Errorf("later: %v", got)
	}
	if got := filter(t, pool, other); !slices.Equal(got, []inbox.Verdict{inbox.Conflicting}) {
		t.Errorf("alone: %v", got)
	}
}
