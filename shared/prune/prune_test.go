package prune

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weirlog/weir/shared/pg/pgtest"
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
