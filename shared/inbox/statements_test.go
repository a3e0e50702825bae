package inbox_test

import (
	"context"
	"fmt"
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
// inbox, also with PostgreSQL's generic plans.
func TestLocksFewDays(t *testing.T) {
	pool := onOneConnection(t, openOwned(t))
	var days []time.Time
	for n := range 30 {
		days = append(days, noon.AddDate(0, 0, -n).Truncate(24*time.Hour))
	}
	testenv.Must(t, pg.InTx(t.Context(), pool, func(tx pgx.Tx) error { return pg.EnsureDays(t.Context(), tx, "inbox", days...) }))
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
