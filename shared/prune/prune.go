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

// A Bound is what a table keeps, and what enforces it. Every table has
// one: a test checks the catalogue.
type Bound struct {
	Table string // its name in the schema
	Keeps string // such as "the newest 1,000 facts"
	By    string // what enforces it
}

// byPruner enforces the bounds of Tables.
const byPruner = "shared/prune"

// migrations is the table that shared/pg creates in every schema.
var migrations = Bound{Table: "migrations", Keeps: "a row for each migration that there is", By: "shared/pg"}

// Bounds returns those of all tables of the Pruner.
func (p *Pruner) Bounds() []Bound {
	bounds := append([]Bound{migrations}, p.cfg.Fixed...)
	for _, table := range p.tables {
		bounds = append(bounds, Bound{Table: table.Name(), Keeps: table.Keeps(), By: byPruner})
	}
	return bounds
}

// batch is how many rows one transaction deletes at most.
const batch = 10_000

// Rows is a table whose rows are deleted by age. Identifiers and
// conditions are SQL of the caller.
type Rows struct {
	Table  string
	Bound  string           // see Table.Keeps
	Age    string           // the column, or expression, of a row's time
	Before func() time.Time // older rows are deleted; see Ago
	Only   string           // a further condition for deletion, with "t" as the table; empty: none

	AppendOnly bool // rows never change, so none is locked: no right to UPDATE is needed
}

// Ago returns the time a span before now.
func Ago(span time.Duration, clock func() time.Time) func() time.Time {
	return func() time.Time { return clock().Add(-span) }
}

// Name implements Table.
func (r Rows) Name() string { return r.Table }

// Keeps implements Table.
func (r Rows) Keeps() string { return r.Bound }

// Prune implements Table. It skips locked rows, unless the table is AppendOnly.
func (r Rows) Prune(ctx context.Context, tx pgx.Tx) (removed int64, more bool, err error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return 0, false, err
	}
	tag, err := tx.Exec(ctx, fmt.Sprintf(`DELETE FROM %[1]s WHERE ctid = ANY (ARRAY(
		SELECT ctid FROM %[1]s AS t WHERE %[2]s < $1%[3]s LIMIT %[4]d%[5]s))`, r.Table, r.Age, r.and(), batch, r.lock()),
		r.Before())
	return tag.RowsAffected(), tag.RowsAffected() == batch, err
}

func (r Rows) lock() string {
	if r.AppendOnly {
		return ""
	}
	return " FOR UPDATE SKIP LOCKED"
}

func (r Rows) and() string {
	if r.Only == "" {
		return ""
	}
	return " AND " + r.Only
}

// Oldest implements Table. It ignores rows that do not age.
func (r Rows) Oldest(ctx context.Context, tx pgx.Tx) (time.Time, error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return time.Time{}, err
	}
	var oldest *time.Time
	err := tx.QueryRow(ctx, fmt.Sprintf(`SELECT min(%[1]s) FROM %[2]s AS t WHERE %[1]s < 'infinity'`, r.Age, r.Table)).Scan(&oldest)
	if err != nil || oldest == nil {
		return time.Time{}, err
	}
	return *oldest, nil
}
