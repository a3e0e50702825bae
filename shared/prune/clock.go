package prune

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/shared/pg"
)

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
