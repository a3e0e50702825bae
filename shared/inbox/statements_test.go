package inbox_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/inbox"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/testenv"
)

// A thousand records with idempotency keys take as many queries as one.
func TestAnInboxAsksOnce(t *testing.T) {
	pool, statements := pgtest.Counted(t, open(t))
	made := 0
	add := func(n int) int64 {
		records := make([]contract.LogsAccepted, n)
		for i := range records {
			made++
			records[i] = idempotent("1", fmt.Sprint("key ", made), "digest", noon)
			records[i].Batch = fmt.Sprintf("%08x-0000-7000-8000-000000000000", made)
		}
		return statements.Of(func() { filter(t, pool, records...) })
	}
	add(1) // creates the day
	if one, thousand := add(1), add(1000); one == 0 || thousand != one {
		t.Errorf("%d statements for one record, %d for a thousand", one, thousand)
	}
}

// A lookup of records locks their days, not the whole month of an
// inbox, also with PostgreSQL's generic plans: for the parts of a
// request, and for a key whose request may be incomplete.
func TestLocksFewDays(t *testing.T) {
	pool := onOneConnection(t, openOwned(t))
	var days []time.Time
	for n := range 30 {
		days = append(days, noon.AddDate(0, 0, -n).Truncate(24*time.Hour))
	}
	testenv.Must(t, pg.InTx(t.Context(), pool, func(tx pgx.Tx) error { return pg.EnsureDays(t.Context(), tx, "inbox", days...) }))
	asSystem(t, pool, `INSERT INTO inbox_idempotency (idempotency, accepted_at, batch, digest)
		VALUES ('key', '`+noon.Add(-time.Hour).Format(time.RFC3339)+`', '`+batch("1")+`', 'digest')`)
	for range 7 { // the sixth time has a generic plan
		if locked := daysLocked(t, pool, keyed("key", "digest", noon, parts("2", 1, 2)...)); locked != 1 {
			t.Fatalf("%d days are locked, want that of the records", locked)
		}
	}
}

// daysLocked returns how many days of the inbox a transaction locks
// that judges records.
func daysLocked(t *testing.T, pool *pgxpool.Pool, records []contract.LogsAccepted) (days int) {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	testenv.Must(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	testenv.Must(t, pg.AsSystem(t.Context(), tx))
	if _, err := inbox.Filter(t.Context(), tx, records); err != nil {
		t.Fatal(err)
	}
	err = tx.QueryRow(t.Context(), `SELECT count(DISTINCT l.relation) FROM pg_locks l JOIN pg_inherits i ON i.inhrelid = l.relation
		WHERE l.pid = pg_backend_pid() AND i.inhparent = 'inbox'::regclass`).Scan(&days)
	testenv.Must(t, err)
	return days
}

// Queries use the inbox's index once it has grown, even if they were
// planned while the day was empty.
func TestQueriesUseTheIndex(t *testing.T) {
	pool := onOneConnection(t, open(t))
	made := 0
	add := func(records int) {
		batches := make([]contract.LogsAccepted, records)
		for i := range batches {
			made++
			batches[i] = record("1", 1)
			batches[i].Batch = fmt.Sprintf("%08x-0000-7000-8000-000000000000", made)
		}
		filter(t, pool, batches...)
	}
	for range 10 { // PostgreSQL keeps a plan after five
		add(50)
		made-- // so that the inbox is queried
	}
	for range 20 {
		add(1000)
	}
	before := rowsRead(t, pool)
	add(50)
	if read := rowsRead(t, pool) - before; read > 0 {
		t.Errorf("for 50 new records %d rows of the inbox were read", read)
	}
	made -= 10
	add(50)
	if read := rowsRead(t, pool) - before; read != 10 {
		t.Errorf("for 50 records, 10 of which were seen, %d rows of the inbox were read", read)
	}
}

// onOneConnection returns the same database over one connection, which
// keeps its plans.
func onOneConnection(t *testing.T, pool *pgxpool.Pool) *pgxpool.Pool {
	t.Helper()
	config := pool.Config()
	config.MaxConns = 1
	single, err := pgxpool.NewWithConfig(t.Context(), config)
	testenv.Must(t, err)
	t.Cleanup(single.Close)
	return single
}

// rowsRead returns how many rows of the day were ever read.
func rowsRead(t *testing.T, pool *pgxpool.Pool) (rows int64) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), `SELECT pg_stat_force_next_flush()`); err != nil {
		t.Fatal(err)
	}
	err := pool.QueryRow(t.Context(), `SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_user_tables WHERE relname = $1`, pg.DayPartition("inbox", noon)).Scan(&rows)
	testenv.Must(t, err)
	return rows
}

// appliedBefore stores parts of request 1 as a version did that knew no
// whole requests: it claimed the key "key" with the first part.
func appliedBefore(t *testing.T, pool *pgxpool.Pool, parts int) {
	t.Helper()
	filter(t, pool, record("9", 1)) // creates the partition of the day
	asSystem(t, pool, fmt.Sprintf(`INSERT INTO inbox (day, batch, part) SELECT '%s', '%s', part FROM generate_series(1, %d) AS part`,
		noon.Format(time.DateOnly), batch("1"), parts))
	asSystem(t, pool, fmt.Sprintf(`INSERT INTO inbox_idempotency (idempotency, accepted_at, batch, digest) VALUES ('key', '%s', '%s', 'same')`,
		noon.Format(time.RFC3339), batch("1")))
}

// A request continues after an upgrade in its middle, and counts for
// its key from then on.
func TestARequestGoesOnAfterAnUpgrade(t *testing.T) {
	pool := open(t)
	appliedBefore(t, pool, 1)
	verdicts, rest := take(t, pool, keyed("key", "same", noon, parts("1", 2, 3)...)...)
	if want := []inbox.Verdict{partial, fresh}; !slices.Equal(verdicts, want) || len(rest) != 2 {
		t.Errorf("verdicts = %v, want %v; the effect is that of %q", verdicts, want, rest)
	}
	if got := filter(t, pool, idempotent("2", "key", "same", noon), idempotent("3", "key", "other", noon)); !slices.Equal(got, []inbox.Verdict{replayed, reused}) {
		t.Errorf("verdicts = %v, want a replay and a reuse", got)
	}
}

// A request published in part before an upgrade does not block a whole
// one; one published whole does.
func TestARequestIsSentAgainAfterAnUpgrade(t *testing.T) {
	for _, test := range []struct {
		name   string
		before int // parts that were applied
		digest string
		want   []inbox.Verdict
	}{
		{"in part", 1, "same", []inbox.Verdict{partial, partial, fresh}},
		{"in part, up to the last", 2, "same", []inbox.Verdict{partial, partial, fresh}},
		{"whole", 3, "same", []inbox.Verdict{replayed, replayed, replayed}},
		{"another body", 1, "other", []inbox.Verdict{reused, reused, reused}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, after := range []time.Duration{0, time.Minute} {
				pool := open(t)
				appliedBefore(t, pool, test.before)
				again := func(digit string) []inbox.Verdict {
					return filter(t, pool, keyed("key", test.digest, noon.Add(after), parts(digit, 1, 2, 3)...)...)
				}
				if got := again("2"); !slices.Equal(got, test.want) {
					t.Errorf("verdicts = %v, want %v", got, test.want)
				}
				if got := again("3"); slices.Contains(got, fresh) {
					t.Errorf("verdicts = %v of a third copy", got)
				}
			}
		})
	}
}

// A request of one record that counted before an upgrade still counts.
func TestAReplayAfterAnUpgrade(t *testing.T) {
	pool := open(t)
	appliedBefore(t, pool, 1)
	if got := filter(t, pool, idempotent("2", "key", "same", noon.Add(time.Minute))); !slices.Equal(got, []inbox.Verdict{replayed}) {
		t.Errorf("verdicts = %v, want a replay", got)
	}
}
