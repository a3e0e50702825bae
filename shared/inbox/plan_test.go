package inbox_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
)

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
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	return rows
}
