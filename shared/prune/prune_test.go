package prune

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/testenv"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// fakeTable has some rows beyond its bound, each as many hours old as
// there are rows left. A transaction removes two of them.
type fakeTable struct {
	name  string
	left  int64
	fails error
	runs  chan struct{}
}

func (f *fakeTable) Name() string { return f.name }

func (f *fakeTable) Keeps() string { return "what is left" }

func (f *fakeTable) Prune(context.Context, pgx.Tx) (removed int64, more bool, err error) {
	select {
	case f.runs <- struct{}{}:
	default:
	}
	removed = min(2, f.left)
	f.left -= removed
	return removed, removed == 2, f.fails
}

func (f *fakeTable) Oldest(context.Context, pgx.Tx) (time.Time, error) {
	if f.name == "empty" {
		return time.Time{}, nil
	}
	return noon.Add(-time.Hour), nil
}

func fixed(tables ...Table) func(func() time.Time) []Table {
	return func(func() time.Time) []Table { return tables }
}

func newPruner(t *testing.T, log *slog.Logger, tables ...Table) (*Pruner, *prometheus.Registry) {
	t.Helper()
	metrics := prometheus.NewRegistry()
	return New(Config{
		Pool: pgtest.OpenOwned(t, "prunetest"), Tables: fixed(tables...), Clock: func() time.Time { return noon }, Metrics: metrics, Logger: log,
	}), metrics
}

// Each table is pruned to its bound although another one fails, and
// removed rows are counted.
func TestRunOnce(t *testing.T) {
	broken := errors.New("broken")
	tables := []*fakeTable{{name: "broken", left: 1, fails: broken}, {name: "empty"}, {name: "full", left: 5}}
	p, metrics := newPruner(t, slog.New(slog.DiscardHandler), tables[0], tables[1], tables[2])
	if err := p.RunOnce(t.Context()); !errors.Is(err, broken) || !strings.Contains(err.Error(), "cannot prune broken") {
		t.Errorf("the run ends with %v", err)
	}
	if testutil.ToFloat64(p.done) != 0 {
		t.Error("a run that left a table unpruned counts as done")
	}
	if left := tables[2].left; left != 0 {
		t.Errorf("%d rows are left beyond the bound", left)
	}
	if err := testutil.GatherAndCompare(metrics, strings.NewReader(`
# HELP weir_prune_oldest_age_seconds Age of the oldest row that the last run left in a table; 0 if it left none.
# TYPE weir_prune_oldest_age_seconds gauge
weir_prune_oldest_age_seconds{table="broken"} 0
weir_prune_oldest_age_seconds{table="empty"} 0
weir_prune_oldest_age_seconds{table="full"} 3600
# HELP weir_pruned_total What was removed from a table beyond its bound: rows, or days of a partitioned table.
# TYPE weir_pruned_total counter
weir_pruned_total{table="broken"} 0
weir_pruned_total{table="empty"} 0
weir_pruned_total{table="full"} 5
`), "weir_prune_oldest_age_seconds", "weir_pruned_total"); err != nil {
		t.Error(err)
	}
}

// Run prunes at its start, logs failures, and ends with its context.
func TestRun(t *testing.T) {
	var lines lines
	table := &fakeTable{name: "broken", fails: errors.New("broken"), runs: make(chan struct{}, 1)}
	p, _ := newPruner(t, slog.New(slog.NewTextHandler(&lines, nil)), table)
	ctx, cancel := context.WithCancel(t.Context())
	lines.written = cancel
	if err := p.Run(ctx); err != nil {
		t.Errorf("Run ends with %v", err)
	}
	if len(table.runs) != 1 || !slices.ContainsFunc(lines.all, func(s string) bool { return strings.Contains(s, "cannot prune broken: broken") }) {
		t.Errorf("%d runs, logged %q", len(table.runs), lines.all)
	}
}

// lines are the logged lines.
type lines struct {
	all     []string
	written func()
}

func (l *lines) Write(line []byte) (int, error) {
	l.all = append(l.all, string(line))
	l.written()
	return len(line), nil
}

// Old rows that match the condition are deleted; locked ones later. All
// tables are measured.
func TestRows(t *testing.T) {
	pool := pgtest.OpenOwned(t, "prunetest")
	_, err := pool.Exec(t.Context(), `CREATE TABLE things (id int, at timestamptz, over boolean);
		INSERT INTO things SELECT n, '2026-11-22 12:00Z'::timestamptz - n * interval '1 day', n % 2 = 0 FROM generate_series(1, 20) AS n`)
	testenv.Must(t, err)
	metrics := prometheus.NewRegistry()
	tables := func(clock func() time.Time) []Table {
		return []Table{Rows{Table: "things", Bound: "10 days", Age: "at", Before: Ago(10*24*time.Hour, clock), Only: "over"}}
	}
	p := New(Config{Pool: pool, Tables: tables, Clock: func() time.Time { return noon }, Metrics: metrics, Logger: slog.New(slog.DiscardHandler)})
	run := func() (left []int) {
		t.Helper()
		testenv.Must(t, p.RunOnce(t.Context()))
		found, err := pool.Query(t.Context(), `SELECT id FROM things WHERE over ORDER BY id`)
		testenv.Must(t, err)
		left, err = pgx.CollectRows(found, pgx.RowTo[int])
		testenv.Must(t, err)
		return left
	}
	locked, err := pool.Begin(t.Context())
	if err == nil {
		_, err = locked.Exec(t.Context(), `SELECT FROM things WHERE id = 18 FOR UPDATE`)
	}
	testenv.Must(t, err)
	if left := run(); !slices.Equal(left, []int{2, 4, 6, 8, 10, 18}) {
		t.Errorf("while one is locked %v are left", left)
	}
	testenv.Must(t, locked.Rollback(t.Context()))
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
	testenv.Must(t, err)
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
	testenv.Must(t, err)
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

// onSystemClock is a pruner of one table, on a machine whose clock is
// ahead of the database's.
func onSystemClock(t *testing.T, pool *pgxpool.Pool, ahead time.Duration, table Table) *Pruner {
	t.Helper()
	p := New(Config{Pool: pool, Tables: fixed(table), Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler)})
	p.clock.machine = func() time.Time { return time.Now().Add(ahead) }
	return p
}

// Nothing is removed while the database's clock differs, ahead or
// behind; once the clock is set right, old rows are.
func TestAWrongClockPrunesNothing(t *testing.T) {
	pool := pgtest.OpenOwned(t, "prunetest")
	for _, ahead := range []time.Duration{365 * 24 * time.Hour, 2 * time.Hour, -2 * time.Hour} {
		table := &fakeTable{name: "full", left: 5}
		p := onSystemClock(t, pool, ahead, table)
		if err := p.RunOnce(t.Context()); !errors.Is(err, ErrClocksDiffer) || levelOf(err) != slog.LevelError || table.left != 5 {
			t.Errorf("a clock %v ahead: %d of 5 rows are left, %v", ahead, table.left, err)
		}
		if apart := testutil.ToFloat64(p.clock.apart); math.Abs(apart-ahead.Seconds()) > 600 || testutil.ToFloat64(p.done) != 0 {
			t.Errorf("a clock %v ahead: the metrics say %v s, and a run done at %v", ahead, apart, testutil.ToFloat64(p.done))
		}
		if testutil.ToFloat64(p.clock.refused) != 1 {
			t.Errorf("a clock %v ahead: the metric is %v", ahead, testutil.ToFloat64(p.clock.refused))
		}
		p.clock.machine = time.Now
		if err := p.RunOnce(t.Context()); err != nil || table.left != 0 || testutil.ToFloat64(p.clock.refused) != 0 {
			t.Errorf("by the right clock: %d rows are left, the metric is %v, %v", table.left, testutil.ToFloat64(p.clock.refused), err)
		}
		if testutil.ToFloat64(p.done) == 0 {
			t.Error("no metric says that a run is done")
		}
	}
}

// While the two clocks are close, the earlier one decides.
func TestTheEarlierClockDecides(t *testing.T) {
	pool := pgtest.OpenOwned(t, "prunetest")
	for _, ahead := range []time.Duration{30 * time.Minute, -30 * time.Minute} {
		p := onSystemClock(t, pool, ahead, &fakeTable{name: "empty"})
		testenv.Must(t, p.RunOnce(t.Context()))
		if off := time.Until(p.clock.now()) - min(ahead, 0); off.Abs() > 10*time.Minute {
			t.Errorf("a clock %v ahead prunes by a time that is off by %v", ahead, off)
		}
	}
}
