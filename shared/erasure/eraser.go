package erasure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/pg"
)

// Config configures an Eraser. Interval and Batch are optional.
type Config struct {
	Module  string  // as in contract.ErasingModules
	Tables  []Table // in the order of erasure
	Pool    *pgxpool.Pool
	Bus     *publisher.Publisher
	Clock   func() time.Time
	Metrics prometheus.Registerer
	Logger  *slog.Logger

	Interval time.Duration // between looks for deletions; default 1 s
	Batch    int           // rows of one transaction; default 5,000
}

// An Eraser erases deletions, one transaction of each in turn. Replicas
// continue for each other.
//
// It repeats its pass over the tables until one finds nothing, because
// a row may move within a table meanwhile.
type Eraser struct {
	Config
	metrics metrics
}

// New returns an Eraser.
func New(config Config) *Eraser {
	config.Interval, config.Batch = cmp.Or(config.Interval, time.Second), cmp.Or(config.Batch, 5000)
	return &Eraser{config, newMetrics(config.Metrics)}
}

// Run erases until ctx ends. A failure is logged and retried.
func (e *Eraser) Run(ctx context.Context) error {
	return lifecycle.Every(ctx, e.Interval, e.RunOnce, lifecycle.Warn(e.Logger, "cannot erase what is deleted"))
}

// RunOnce erases and publishes all that it can, also deletions that
// begin meanwhile. A large or failing deletion delays no other.
func (e *Eraser) RunOnce(ctx context.Context) error {
	run := run{eraser: e, ended: map[Deletion]bool{}}
	for more := true; more; {
		open, err := e.open(ctx)
		if err != nil {
			return errors.Join(append(run.failed, err)...)
		}
		more = run.round(ctx, open)
	}
	return errors.Join(run.failed...)
}

// A run is the progress of one RunOnce.
type run struct {
	eraser *Eraser
	ended  map[Deletion]bool // erased, failed, or another replica's: not retried; bounded by open deletions
	failed []error
}

// round makes a step of each deletion, and reports whether any goes on.
// A waiting one is asked again in the next round, but starts none.
func (r *run) round(ctx context.Context, open []Deletion) (more bool) {
	for _, of := range open {
		if r.ended[of] {
			continue
		}
		goesOn, err := r.eraser.turn(ctx, of)
		if errors.Is(err, ErrNotYet) {
			continue
		}
		if err != nil {
			r.failed = append(r.failed, fmt.Errorf("%v: %w", of, err))
		}
		r.ended[of] = !goesOn
		more = more || goesOn
	}
	return more
}

// open lists the deletions not erased or not published, oldest first.
func (e *Eraser) open(ctx context.Context) (open []Deletion, err error) {
	overdue := 0
	err = e.asSystem(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT organization, project, gone_by FROM erasures WHERE published_at IS NULL ORDER BY begun_at, organization, project`)
		if err != nil {
			return err
		}
		var of Deletion
		var goneBy time.Time
		_, err = pgx.ForEachRow(rows, []any{&of.Organization, &of.Project, &goneBy}, func() error {
			open = append(open, of)
			if goneBy.Before(e.Clock()) {
				overdue++
			}
			return nil
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read what is to be erased: %w", err)
	}
	e.metrics.open.Set(float64(len(open)))
	e.metrics.overdue.Set(float64(overdue))
	return open, nil
}

// turn makes a step of a deletion, or publishes after the last.
func (e *Eraser) turn(ctx context.Context, of Deletion) (more bool, err error) {
	more, err = e.step(ctx, of)
	switch {
	case pg.IsReferenced(err):
		return false, errors.Join(err, e.again(ctx, of))
	case err != nil, more:
		return more, err
	}
	return false, e.publish(ctx, of)
}

// again restarts the pass: a row can't be deleted because another one
// came into a table that the pass has left.
func (e *Eraser) again(ctx context.Context, of Deletion) error {
	return e.asSystem(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE erasures SET step = 0, place = '', found = true WHERE organization = $1 AND project = $2 AND erased_at IS NULL`,
			of.Organization, of.Project)
		return err
	})
}

// progress is a deletion's place in the tables.
type progress struct {
	step  int
	place string
	found bool
}

// step is one transaction. more is false if nothing is left, or another
// replica works on it.
func (e *Eraser) step(ctx context.Context, of Deletion) (more bool, err error) {
	var table string
	var removed int64
	err = e.asSystem(ctx, func(tx pgx.Tx) error {
		var at progress
		err := tx.QueryRow(ctx, `SELECT step, place, found FROM erasures WHERE organization = $1 AND project = $2 AND erased_at IS NULL
			FOR UPDATE SKIP LOCKED`, of.Organization, of.Project).Scan(&at.step, &at.place, &at.found)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		if more = true; at.step < len(e.Tables) {
			table = e.Tables[at.step].Name
			if removed, at.place, err = e.Tables[at.step].Erase(ctx, tx, of, at.place, e.Batch); err != nil {
				return fmt.Errorf("cannot erase %s: %w", table, err)
			}
		}
		return e.advance(ctx, tx, of, at, removed)
	})
	if err != nil {
		return false, err
	}
	e.metrics.erased(table, removed)
	return more, nil
}

// advance stores the progress after a step, and the end of the erasure
// after a pass that found nothing.
func (e *Eraser) advance(ctx context.Context, tx pgx.Tx, of Deletion, at progress, removed int64) (err error) {
	switch {
	case at.step < len(e.Tables):
		name := e.Tables[at.step].Name
		if at.place == "" {
			at.step++
		}
		_, err = tx.Exec(ctx, `UPDATE erasures SET step = $3, place = $4, found = found OR $6 > 0,
			removed = removed || jsonb_build_object($5::text, coalesce((removed->>$5::text)::bigint, 0) + $6::bigint)
			WHERE organization = $1 AND project = $2`, of.Organization, of.Project, at.step, at.place, name, removed)
	case at.found:
		_, err = tx.Exec(ctx, `UPDATE erasures SET step = 0, found = false WHERE organization = $1 AND project = $2`, of.Organization, of.Project)
	default:
		_, err = tx.Exec(ctx, `UPDATE erasures SET erased_at = $3 WHERE organization = $1 AND project = $2`, of.Organization, of.Project, e.Clock().UTC())
	}
	return err
}

func (e *Eraser) asSystem(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return pg.InTx(ctx, e.Pool, func(tx pgx.Tx) error {
		if err := pg.AsSystem(ctx, tx); err != nil {
			return err
		}
		return fn(tx)
	})
}
