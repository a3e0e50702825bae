package prune

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/pg"
)

// A Table grows until it is pruned to its bound.
type Table interface {
	// Name returns its name in the schema, such as "facts".
	Name() string
	// Keeps returns the bound, as in Bound.
	Keeps() string
	// Prune deletes at most one transaction's worth of rows beyond the
	// bound, and reports whether more may be left.
	Prune(ctx context.Context, tx pgx.Tx) (removed int64, more bool, err error)
	// Oldest returns the time of the oldest row; zero for an empty table.
	Oldest(ctx context.Context, tx pgx.Tx) (time.Time, error)
}

// interval is the time between two runs.
const interval = 10 * time.Minute

// Config configures a Pruner. Fixed, Clock and Metrics are optional.
type Config struct {
	Pool    *pgxpool.Pool
	Tables  func(clock func() time.Time) []Table // by the Pruner's clock, which is checked
	Fixed   []Bound                              // of the schema's other tables, which cannot grow beyond what they describe
	Clock   func() time.Time                     // the caller's own, which is trusted; nil: the system's, which is compared with the database's
	Metrics prometheus.Registerer
	Logger  *slog.Logger
}

// A Pruner keeps tables within their bounds.
type Pruner struct {
	cfg     Config
	clock   *clock
	tables  []Table
	metrics map[string]*metrics // by table; bounded by the tables
	sizes   *sizes
	done    prometheus.Gauge
}

// New registers the metrics of the tables.
func New(cfg Config) *Pruner {
	clock := newClock(cfg.Clock, cfg.Metrics)
	p := &Pruner{
		cfg: cfg, clock: clock, tables: cfg.Tables(clock.now), metrics: make(map[string]*metrics), sizes: newSizes(cfg.Metrics), done: newDone(cfg.Metrics),
	}
	for _, table := range p.tables {
		p.metrics[table.Name()] = newMetrics(cfg.Metrics, table.Name(), clock.now)
	}
	return p
}

// Run prunes now and every ten minutes until ctx ends. A failure
// is logged and retried at the next run.
func (p *Pruner) Run(ctx context.Context) error {
	return lifecycle.Every(ctx, interval, p.RunOnce, p.logFailure)
}

func (p *Pruner) logFailure(ctx context.Context, err error) {
	p.cfg.Logger.Log(ctx, levelOf(err), "cannot prune", slog.String("error", err.Error()))
}

// levelOf returns Error for a failure that lasts, Warn for one that a
// retry may end.
func levelOf(err error) slog.Level {
	if errors.Is(err, ErrClocksDiffer) {
		return slog.LevelError
	}
	return slog.LevelWarn
}

// RunOnce prunes every table to its bound, even if others fail; none
// while the clocks differ.
func (p *Pruner) RunOnce(ctx context.Context) error {
	err := p.clock.check(ctx, p.cfg.Pool)
	if err == nil {
		err = p.pruneAll(ctx)
	}
	if err == nil {
		p.done.Set(float64(p.clock.machine().Unix()))
	}
	return errors.Join(err, p.sizes.measure(ctx, p.cfg.Pool))
}

func (p *Pruner) pruneAll(ctx context.Context) error {
	var failed []error
	for _, table := range p.tables {
		if err := p.prune(ctx, table); err != nil {
			failed = append(failed, fmt.Errorf("cannot prune %s: %w", table.Name(), err))
		}
	}
	return errors.Join(failed...)
}

func (p *Pruner) prune(ctx context.Context, table Table) error {
	for {
		more, err := p.pruneSome(ctx, table)
		if err != nil || !more {
			return err
		}
	}
}

// waitForLock limits a transaction's wait for a lock: others wait behind it.
const waitForLock = `SET LOCAL lock_timeout = '2s'`

// pruneSome runs one transaction. Metrics count what is committed.
func (p *Pruner) pruneSome(ctx context.Context, table Table) (more bool, err error) {
	var removed int64
	var oldest time.Time
	err = pg.InTx(ctx, p.cfg.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, waitForLock); err != nil {
			return err
		}
		if removed, more, err = table.Prune(ctx, tx); err != nil {
			return err
		}
		oldest, err = table.Oldest(ctx, tx)
		return err
	})
	if err != nil {
		return false, err
	}
	p.metrics[table.Name()].pruned(removed, oldest)
	return more, nil
}
