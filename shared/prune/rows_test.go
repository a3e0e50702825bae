package prune

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/shared/pg/pgtest"
)

// Old rows that match the condition are deleted; locked ones later. All
// tables are measured.
func TestRows(t *testing.T) {
	pool := pgtest.OpenOwned(t, "prunetest")
	_, err := pool.Exec(t.Context(), `CREATE TABLE things (id int, at timestamptz, over boolean);
		INSERT INTO things SELECT n, '2026-11-22 12:00Z'::timestamptz - n * interval '1 day', n % 2 = 0 FROM generate_series(1, 20) AS n`)
	if err != nil {
		t.Fatal(err)
	}
	metrics := prometheus.NewRegistry()
	tables := func(clock func() time.Time) []Table {
		return []Table{Rows{Table: "things", Bound: "10 days", Age: "at", Before: Ago(10*24*time.Hour, clock), Only: "over"}}
	}
	p := New(Config{Pool: pool, Tables: tables, Clock: func() time.Time { return noon }, Metrics: metrics, Logger: slog.New(slog.DiscardHandler)})
	run := func() (left []int) {
		t.Helper()
		if err := p.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		found, err := pool.Query(t.Context(), `SELECT id FROM things WHERE over ORDER BY id`)
		if err != nil {
			t.Fatal(err)
		}
		left, err = pgx.CollectRows(found, pgx.RowTo[int])
		if err != nil {
			t.Fatal(err)
		}
		return left
	}
	locked, err := pool.Begin(t.Context())
	if err == nil {
		_, err = locked.Exec(t.Context(), `SELECT FROM things WHERE id = 18 FOR UPDATE`)
	}
	if err != nil {
		t.Fatal(err)
	}
	if left := run(); !slices.Equal(left, []int{2, 4, 6, 8, 10, 18}) {
		t.Errorf("while one is locked %v are left", left)
	}
	if err := locked.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := run(); !slices.Equal(left, []int{2, 4, 6, 8, 10}) {
		t.Errorf("%v are left", left)
	}
	if size := value(t, metrics, "weir_table_bytes", "things"); size <= 0 {
		t.Errorf("the table has %v bytes", size)
	}
}

// Rows that do not age do not stop the pruning of others.
func TestRowsThatDoNotAge(t *testing.T) {
	pool := pgtest.OpenOwned(t, "prunetest")
	_, err := pool.Exec(t.Context(), `CREATE TABLE things (ended timestamptz); INSERT INTO things VALUES (NULL)`)
	if err != nil {
		t.Fatal(err)
	}
	tables := func(clock func() time.Time) []Table {
		return []Table{Rows{Table: "things", Bound: "a day after their end", Age: "coalesce(ended, 'infinity')", Before: Ago(24*time.Hour, clock)}}
	}
	metrics := prometheus.NewRegistry()
	p := New(Config{Pool: pool, Tables: tables, Clock: func() time.Time { return noon }, Metrics: metrics, Logger: slog.New(slog.DiscardHandler)})
	if err := p.RunOnce(t.Context()); err != nil {
		t.Error(err)
	}
}

func value(t *testing.T, metrics *prometheus.Registry, name, table string) float64 {
	t.Helper()
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == name && metric.GetLabel()[0].GetValue() == table {
				return metric.GetGauge().GetValue()
			}
		}
	}
	t.Fatalf("there is no metric %s of %s", name, table)
	return 0
}
