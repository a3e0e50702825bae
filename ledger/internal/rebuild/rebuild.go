package rebuild

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ledger/internal/integrity"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/rehearsals"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
)

// A Rebuild makes the ledger of Anew, which is empty, of what that of Before
// was made of.
type Rebuild struct {
	Before, Anew *pgxpool.Pool
	Log          Log // applies to Anew
	Work         *unitofwork.Writer
	Names        postgres.Names
}

// A Log has what was published.
type Log interface {
	// Open opens the log for Logs. It fails unless the log still has
	// every record below positions.
	Open(ctx context.Context, topic [16]byte, through contract.Positions) error
	// Tenants applies the records of tenants below an offset and
	// returns the topic's id.
	Tenants(ctx context.Context, through int64) (topic [16]byte, err error)
	// Logs applies the unapplied entries below positions.
	Logs(ctx context.Context, through contract.Positions) error
}

// A Report is what came of it.
type Report struct {
	Decisions   int
	Things      int // that were compared
	Differences []postgres.Difference
}

// mostDifferences are as many as one looks at.
const mostDifferences = 100

// ErrForgotten means that decisions of which a ledger was made are gone, as the
// books of their time are.
var ErrForgotten = errors.New("decisions are not kept any more")

// Run makes the ledger and compares it with that of before as it was when this
// began. That may go on meanwhile.
func (r *Rebuild) Run(ctx context.Context) (report Report, err error) {
	err = pg.Snapshot(ctx, r.Before, func(before pgx.Tx) (err error) {
		report, err = r.run(ctx, before)
		return err
	})
	return report, err
}

func (r *Rebuild) run(ctx context.Context, before pgx.Tx) (report Report, err error) {
	if err := pg.AsSystem(ctx, before); err != nil {
		return report, err
	}
	progress, err := postgres.ProgressOf(ctx, before, r.Names)
	if err != nil {
		return report, fmt.Errorf("cannot read how far the ledger is: %w", err)
	}
	if report.Decisions, err = r.make(ctx, before, progress); err != nil {
		return report, err
	}
	err = pg.Snapshot(ctx, r.Anew, func(anew pgx.Tx) (err error) {
		if err := pg.AsSystem(ctx, anew); err != nil {
			return err
		}
		report.Differences, report.Things, err = postgres.Differences(ctx, before, anew, mostDifferences)
		return err
	})
	return report, err
}

// make brings the new ledger to where the other stands.
func (r *Rebuild) make(ctx context.Context, before pgx.Tx, progress postgres.Progress) (decisions int, err error) {
	if err := r.Log.Open(ctx, progress.Topic, progress.Logs); err != nil {
		return 0, err
	}
	err = pg.InTxAsSystem(ctx, r.Anew, func(tx pgx.Tx) error { return postgres.CopyKept(ctx, tx, progress.Decision) })
	if err != nil {
		return 0, err
	}
	tenants, err := r.Log.Tenants(ctx, progress.Tenants)
	if err != nil {
		return 0, err
	}
	if decisions, err = r.replay(ctx, before, progress); err != nil {
		return decisions, err
	}
	err = pg.InTxAsSystem(ctx, r.Anew, func(tx pgx.Tx) error { return postgres.SetProgress(ctx, tx, r.Names, progress, tenants) })
	if err != nil || len(progress.Sealed) == 0 {
		return decisions, err
	}
	return decisions, r.seal(ctx, progress.Sealed)
}

// seal writes the links of all hours, of those first whose seals are not kept
// any more.
func (r *Rebuild) seal(ctx context.Context, hours []time.Time) error {
	if err := integrity.Seal(ctx, r.Anew, hours[0]); err != nil {
		return err
	}
	err := pg.InTxAsSystem(ctx, r.Anew, func(tx pgx.Tx) error { return postgres.CopyCuts(ctx, tx, hours[len(hours)-1]) })
	for _, hour := range hours {
		if err != nil {
			break
		}
		err = pg.InTxAsSystem(ctx, r.Anew, func(tx pgx.Tx) error { return postgres.SealCut(ctx, tx, hour) })
	}
	return err
}

// replay has each decision take its effect between the entries that were booked
// before it and those behind.
func (r *Rebuild) replay(ctx context.Context, before pgx.Tx, progress postgres.Progress) (decisions int, err error) {
	last := map[string]int64{}
	for decided, err := range postgres.AllDecided(ctx, before, r.Work.Decisions) {
		if err != nil {
			return decisions, err
		}
		if last[decided.Organization]++; decided.Number != last[decided.Organization] {
			return decisions, fmt.Errorf("%w: of organization %q there is number %d where %d is next",
				ErrForgotten, decided.Organization, decided.Number, last[decided.Organization])
		}
		if err := r.Log.Logs(ctx, decided.Behind); err != nil {
			return decisions, err
		}
		if err := r.redo(ctx, decided); err != nil {
			return decisions, fmt.Errorf("cannot repeat decision %d about organization %q: %w", decided.Number, decided.Organization, err)
		}
		decisions++
	}
	return decisions, r.Log.Logs(ctx, progress.Logs)
}

func (r *Rebuild) redo(ctx context.Context, decided postgres.Decided) error {
	return pg.InTxAsSystem(ctx, r.Anew, func(tx pgx.Tx) error {
		books, err := r.Work.Redo(ctx, tx, decided)
		if err != nil {
			return err
		}
		for _, made := range books.Rehearsals {
			if err := rehearsals.Explain(ctx, tx, made); err != nil {
				return err
			}
		}
		return nil
	})
}
