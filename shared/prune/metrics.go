package prune

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/shared/pg"
)

// metrics describe one table.
type metrics struct {
	removed prometheus.Counter
	oldest  atomic.Pointer[time.Time] // after the last run; nil before it and for an empty table
	clock   func() time.Time
}

func newMetrics(registerer prometheus.Registerer, table string, clock func() time.Time) *metrics {
	m := &metrics{clock: clock}
	labels := prometheus.Labels{"table": table}
	m.removed = promauto.With(registerer).NewCounter(prometheus.CounterOpts{
		Name: "weir_pruned_total", Help: "What was removed from a table beyond its bound: rows, or days of a partitioned table.", ConstLabels: labels,
	})
	promauto.With(registerer).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_prune_oldest_age_seconds", Help: "Age of the oldest row that the last run left in a table; 0 if it left none.", ConstLabels: labels,
	}, m.ageSeconds)
	return m
}

// newDone returns the metric of the last run that kept every bound.
func newDone(registerer prometheus.Registerer) prometheus.Gauge {
	return promauto.With(registerer).NewGauge(prometheus.GaugeOpts{
		Name: "weir_prune_last_success_timestamp_seconds", Help: "Unix time of the last run that pruned every table to its bound; 0 before the first.",
	})
}

func (m *metrics) pruned(removed int64, oldest time.Time) {
	m.removed.Add(float64(removed))
	if oldest.IsZero() {
		m.oldest.Store(nil)
		return
	}
	m.oldest.Store(&oldest)
}

func (m *metrics) ageSeconds() float64 {
	oldest := m.oldest.Load()
	if oldest == nil {
		return 0
	}
	return m.clock().Sub(*oldest).Seconds()
}

// sizes measures a schema's tables on disk, so that a failing bound is seen.
type sizes struct{ bytes *prometheus.GaugeVec }

func newSizes(registerer prometheus.Registerer) *sizes {
	return &sizes{promauto.With(registerer).NewGaugeVec(prometheus.GaugeOpts{
		Name: "weir_table_bytes", Help: "Size of a table on disk with its indexes and partitions, as of the last run.",
	}, []string{"table"})}
}

// tableSizes counts partitions, and theirs, to their table.
const tableSizes = `SELECT coalesce(root.relname, c.relname), sum(pg_total_relation_size(c.oid))::bigint
	FROM pg_class c LEFT JOIN pg_class root ON root.oid = pg_partition_root(c.oid)
	WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') GROUP BY 1`

func (s *sizes) measure(ctx context.Context, pool *pgxpool.Pool) error {
	rows, err := pool.Query(ctx, tableSizes)
	if err != nil {
		return fmt.Errorf("cannot measure the tables: %w", err)
	}
	var table string
	var bytes *int64 // null: the partition was just dropped
	_, err = pgx.ForEachRow(rows, []any{&table, &bytes}, func() error {
		if bytes != nil {
			s.bytes.WithLabelValues(table).Set(float64(*bytes))
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("cannot measure the tables: %w", err)
	}
	return nil
}

// ErrClocksDiffer means that nothing is pruned: one of two clocks is
// wrong, and rows old by it may be new.
var ErrClocksDiffer = errors.New("nothing is pruned while the clocks of this machine and of the database differ by more than an hour")

// maxClockDifference is the largest accepted difference of the two clocks.
const maxClockDifference = time.Hour

// A clock is the earlier of this machine's and the database's: rows are
// deleted late rather than early.
type clock struct {
	machine func() time.Time
	trusted bool         // the caller's own: the database's clock does not matter
	ahead   atomic.Int64 // the machine's before the database's at the last comparison, in nanoseconds
	refused prometheus.Gauge
	apart   prometheus.Gauge
}

func newClock(own func() time.Time, registerer prometheus.Registerer) *clock {
	c := &clock{machine: own, trusted: own != nil}
	if own == nil {
		c.machine = time.Now //nolint:forbidigo // this is where the clock of the system comes in
	}
	c.refused = promauto.With(registerer).NewGauge(prometheus.GaugeOpts{
		Name: "weir_prune_refused", Help: "1 while nothing is pruned, because the clocks of this machine and of the database differ by more than an hour.",
	})
	c.apart = promauto.With(registerer).NewGauge(prometheus.GaugeOpts{
		Name: "weir_clock_ahead_seconds", Help: "How far the clock of this machine was ahead of the database's when they were last compared; below 0: behind.",
	})
	return c
}

func (c *clock) now() time.Time { return c.machine().Add(-time.Duration(c.ahead.Load())) }

// check compares the clocks.
func (c *clock) check(ctx context.Context, pool *pgxpool.Pool) error {
	if c.trusted {
		return nil
	}
	ahead, err := pg.ClockAhead(ctx, pool, c.machine)
	if err != nil {
		return err
	}
	c.apart.Set(ahead.Seconds())
	if ahead.Abs() > maxClockDifference {
		c.refused.Set(1)
		here := c.machine().UTC()
		return fmt.Errorf("%w: here it is %s, there %s", ErrClocksDiffer, here.Format(time.RFC3339), here.Add(-ahead).Format(time.RFC3339))
	}
	c.refused.Set(0)
	c.ahead.Store(int64(max(ahead, 0)))
	return nil
}
