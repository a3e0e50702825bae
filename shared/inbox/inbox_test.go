package inbox_test

import (
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

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/inbox"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/prune"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const (
	fresh     = inbox.Fresh
	duplicate = inbox.Duplicate
	replayed  = inbox.Replayed
	reused    = inbox.Reused
)

func open(t *testing.T) *pgxpool.Pool {
	t.Helper()
	return pgtest.Open(t, "inboxtest", inbox.Migrations())
}

func filter(t *testing.T, pool *pgxpool.Pool, records ...contract.LogsAccepted) (verdicts []inbox.Verdict) {
	t.Helper()
	err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) (err error) {
		verdicts, err = inbox.Filter(t.Context(), tx, records)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return verdicts
}

func batch(digit string) string { return "0000000" + digit + "-0000-7000-8000-000000000000" }

func record(digit string, part int) contract.LogsAccepted {
	return contract.LogsAccepted{Batch: batch(digit), Part: part, Parts: 9, Time: noon}
}

func idempotent(digit, key, digest string, at time.Time) contract.LogsAccepted {
	r := record(digit, 1)
	r.Idempotency, r.Digest, r.Time = key, digest, at
	return r
}

// A part of a batch has its effect once, whether its copies come together or in another transaction.
func TestPartsCountOnce(t *testing.T) {
	pool := open(t)
	first := filter(t, pool, record("1", 1), record("1", 2), record("1", 1), record("2", 1))
	if want := []inbox.Verdict{fresh, fresh, duplicate, fresh}; !slices.Equal(first, want) {
		t.Errorf("verdicts = %v, want %v", first, want)
	}
	second := filter(t, pool, record("1", 2), record("1", 3))
	if want := []inbox.Verdict{duplicate, fresh}; !slices.Equal(second, want) {
		t.Errorf("verdicts = %v, want %v", second, want)
	}
}

// What a rolled-back transaction saw is forgotten with it.
func TestRollbackForgets(t *testing.T) {
	pool := open(t)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := inbox.Filter(t.Context(), tx, []contract.LogsAccepted{record("1", 1)}); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := filter(t, pool, record("1", 1)); got[0] != fresh {
		t.Errorf("verdict = %v, want fresh", got[0])
	}
}

// Of one idempotency key the first batch counts for 24 hours: with the same body the others are replays, with another
// body they are reuses, and all parts of the batch that counts are fresh. Afterwards the key is free again.
func TestIdempotencyKeys(t *testing.T) {
	pool := open(t)
	secondPart := idempotent("1", "key", "same", noon)
	secondPart.Part = 2
	steps := []struct {
		name   string
		record contract.LogsAccepted
		want   inbox.Verdict
	}{
		{"the first", idempotent("1", "key", "same", noon), fresh},
		{"its second part", secondPart, fresh},
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

// A request that was published in part and sent again with its key is completed: the parts that are missing have their
// effect, the others are replays.
func TestAHalfPublishedRequestIsCompleted(t *testing.T) {
	parts := func(digit string, at time.Time, numbers ...int) (records []contract.LogsAccepted) {
		for _, number := range numbers {
			record := idempotent(digit, "key", "same", at)
			record.Part = number
			records = append(records, record)
		}
		return records
	}
	pool := open(t)
	filter(t, pool, parts("1", noon, 1)...)
	got := filter(t, pool, parts("2", noon.Add(13*time.Hour), 1, 2, 3)...) // past midnight: another day's partition
	if want := []inbox.Verdict{replayed, fresh, fresh}; !slices.Equal(got, want) {
		t.Errorf("sent again: verdicts = %v, want %v", got, want)
	}
	got = filter(t, pool, append(parts("3", noon, 1, 2, 3), parts("1", noon, 2)...)...)
	if want := []inbox.Verdict{replayed, replayed, replayed, duplicate}; !slices.Equal(got, want) {
		t.Errorf("and again, and what was under way: verdicts = %v, want %v", got, want)
	}
}

// Two consumers that hold copies of one part (two offsets in two partitions) let one effect through.
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

// What lies more than a week back is removed, and nothing younger.
func TestTables(t *testing.T) {
	pool := open(t)
	old, young := idempotent("1", "old", "d", noon.AddDate(0, 0, -9)), idempotent("2", "young", "d", noon)
	filter(t, pool, old, young)
	metrics := prometheus.NewRegistry()
	clock := func() time.Time { return noon }
	pruner := prune.New(prune.Config{Pool: pool, Tables: inbox.Tables(clock), Clock: clock, Metrics: metrics, Logger: slog.New(slog.DiscardHandler)})
	if err := pruner.RunOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := testutil.GatherAndCompare(metrics, strings.NewReader(`
# HELP weir_prune_oldest_age_seconds Age of the oldest row that the last run left in a table; 0 if it left none.
# TYPE weir_prune_oldest_age_seconds gauge
weir_prune_oldest_age_seconds{table="inbox"} 43200
weir_prune_oldest_age_seconds{table="inbox_idempotency"} 0
# HELP weir_pruned_total What was removed from a table beyond its bound: rows, or days of a partitioned table.
# TYPE weir_pruned_total counter
weir_pruned_total{table="inbox"} 1
weir_pruned_total{table="inbox_idempotency"} 1
`), "weir_prune_oldest_age_seconds", "weir_pruned_total"); err != nil {
		t.Error(err)
	}
	if got := filter(t, pool, old, young); !slices.Equal(got, []inbox.Verdict{fresh, duplicate}) {
		t.Errorf("verdicts = %v, want only the old one removed", got)
	}
}

// A clock that runs a month ahead makes an inbox forget nothing of the week before what it has seen last.
func TestTablesUnderAClockThatIsAhead(t *testing.T) {
	pool := open(t)
	old, young := idempotent("1", "old", "d", noon.AddDate(0, 0, -9)), idempotent("2", "young", "d", noon)
	copied := young
	copied.Batch = batch("3")
	filter(t, pool, old, young)
	ahead := func() time.Time { return noon.AddDate(0, 1, 0) }
	pruner := prune.New(prune.Config{
		Pool: pool, Tables: inbox.Tables(ahead), Clock: ahead, Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
	})
	if err := pruner.RunOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := filter(t, pool, old, young, copied); !slices.Equal(got, []inbox.Verdict{fresh, duplicate, replayed}) {
		t.Errorf("verdicts = %v, want only the old one removed", got)
	}
}
