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

// A Rebuild builds the ledger of Target, which is empty, from the same
// records and decisions as that of Source.
type Rebuild struct {
	Source, Target *pgxpool.Pool
	Log            Log // applies to Target
	Work           *unitofwork.Writer
	Names          postgres.Names
}

// A Log replays published records.
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

// A Report is the result of a rebuild.
type Report struct {
	Decisions   int
	Things      int // number compared
	Differences []postgres.Difference
}

// maxDifferences is the most differences reported.
const maxDifferences = 100

// ErrPruned means that decisions behind the ledger have been removed,
// as have the books of their time.
var ErrPruned = errors.New("decisions are gone")

// Run rebuilds the ledger and compares it with a snapshot of Source,
// which may continue meanwhile.
func (r *Rebuild) Run(ctx context.Context) (report Report, err error) {
	err = pg.Snapshot(ctx, r.Source, func(source pgx.Tx) (err error) {
		report, err = r.run(ctx, source)
		return err
	})
	return report, err
}

func (r *Rebuild) run(ctx context.Context, source pgx.Tx) (report Report, err error) {
	if err := pg.AsSystem(ctx, source); err != nil {
		return report, err
	}
	progress, err := postgres.ProgressOf(ctx, source, r.Names)
	if err != nil {
		return report, fmt.Errorf("cannot read the progress of the ledger: %w", err)
	}
	if report.Decisions, err = r.make(ctx, source, progress); err != nil {
		return report, err
	}
	err = pg.Snapshot(ctx, r.Target, func(target pgx.Tx) (err error) {
		if err := pg.AsSystem(ctx, target); err != nil {
			return err
		}
		report.Differences, report.Things, err = postgres.Differences(ctx, source, target, maxDifferences)
		return err
	})
	return report, err
}

// make brings the target to the progress of the source.
func (r *Rebuild) make(ctx context.Context, source pgx.Tx, progress postgres.Progress) (decisions int, err error) {
	if err := r.Log.Open(ctx, progress.Topic, progress.Logs); err != nil {
		return 0, err
	}
	err = pg.InTxAsSystem(ctx, r.Target, func(tx pgx.Tx) error { return postgres.CopyKept(ctx, tx, progress.Decision) })
	if err != nil {
		return 0, err
	}
	tenants, err := r.Log.Tenants(ctx, progress.Tenants)
	if err != nil {
		return 0, err
	}
	if decisions, err = r.replay(ctx, source, progress); err != nil {
		return decisions, err
	}
	err = pg.InTxAsSystem(ctx, r.Target, func(tx pgx.Tx) error { return postgres.SetProgress(ctx, tx, r.Names, progress, tenants) })
	if err != nil || len(progress.Sealed) == 0 {
		return decisions, err
	}
	return decisions, r.seal(ctx, progress.Sealed)
}

// seal writes the links of all hours, first of those without a seal.
func (r *Rebuild) seal(ctx context.Context, hours []time.Time) error {
	if err := integrity.Seal(ctx, r.Target, hours[0]); err != nil {
		return err
	}
	err := pg.InTxAsSystem(ctx, r.Target, func(tx pgx.Tx) error { return postgres.CopyCuts(ctx, tx, hours[len(hours)-1]) })
	for _, hour := range hours {
		if err != nil {
			break
		}
		err = pg.InTxAsSystem(ctx, r.Target, func(tx pgx.Tx) error { return postgres.SealCut(ctx, tx, hour) })
	}
	return err
}

// replay repeats each decision between the entries booked before and after it.
func (r *Rebuild) replay(ctx context.Context, source pgx.Tx, progress postgres.Progress) (decisions int, err error) {
	last := map[string]int64{}
	for decided, err := range postgres.AllDecided(ctx, source, r.Work.Decisions) {
		if err != nil {
			return decisions, err
		}
		if last[decided.Organization]++; decided.Number != last[decided.Organization] {
			return decisions, fmt.Errorf("%w: organization %q has number %d where %d is next",
				ErrPruned, decided.Organization, decided.Number, last[decided.Organization])
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
	return pg.InTxAsSystem(ctx, r.Target, func(tx pgx.Tx) error {
		books, err := r.Work.Redo(ctx, tx, decided)
		if err != nil {
			return err
		}
		for _, rehearsal := range books.Rehearsals {
			if err := rehearsals.Explain(ctx, tx, rehearsal); err != nil {
				return err
			}
		}
		return nil
	})
}
