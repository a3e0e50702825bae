package prune

import (
	"errors"
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weirlog/weir/shared/pg/pgtest"
)

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
		if err := p.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		if off := time.Until(p.clock.now()) - min(ahead, 0); off.Abs() > 10*time.Minute {
			t.Errorf("a clock %v ahead prunes by a time that is off by %v", ahead, off)
		}
	}
}
