package rebuild

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/integrity"
	"github.com/weirlog/weir/ledger/internal/postgres"
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
	Relay          string // of facts
	Tenants        string // group by which tenants is followed
	Outcomes       string // group that counts the outcomes of requests
}

// A Log replays published records.
type Log interface {
	// Open opens the log for Logs, which begins at from. It fails unless
	// the log still has every record from there to through.
	Open(ctx context.Context, topic [16]byte, from, through contract.Positions) error
	// Recall reads the records before from, back to since or as far as
	// the log goes, to know copies and parts of requests that follow.
	Recall(ctx context.Context, since contract.Positions) error
	// Logs applies the unapplied entries below positions.
	Logs(ctx context.Context, through contract.Positions) error
}

// A Report is the result of a rebuild.
type Report struct {
	From        time.Time // hour of the checkpoint it began at; zero: at the beginning
	Decisions   int       // repeated
	Things      int       // number compared
	Differences []postgres.Difference
}

// maxDifferences is the most differences reported.
const maxDifferences = 100

// ErrPruned means that decisions behind the ledger have been removed,
// as have the books of their time.
var ErrPruned = errors.New("decisions are gone")

// recalled is how long before a checkpoint copies and parts of requests
// are looked for: a key of idempotency holds a day.
const recalled = 25 * time.Hour

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
	progress, err := postgres.ProgressOf(ctx, source, r.Relay)
	if err != nil {
		return report, fmt.Errorf("cannot read the progress of the ledger: %w", err)
	}
	from, err := r.open(ctx, source, progress)
	if err != nil {
		return report, err
	}
	report.From = from.Hour
	if report.Decisions, err = r.make(ctx, source, from, progress); err != nil {
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

// open opens the log where the rebuild begins: at its beginning or, if
// that or decisions are gone, at the oldest checkpoint that it reaches.
func (r *Rebuild) open(ctx context.Context, source pgx.Tx, progress postgres.Progress) (from ledger.Checkpoint, err error) {
	whole, err := postgres.HasAllDecisions(ctx, source)
	if err != nil {
		return from, err
	}
	lost := r.Log.Open(ctx, progress.Topic, nil, progress.Logs)
	switch {
	case lost == nil && whole:
		return from, nil
	case lost == nil:
		lost = ErrPruned
	}
	checkpoints, err := postgres.Checkpoints(ctx, source)
	if err != nil {
		return from, err
	}
	from, found, err := r.choose(ctx, source, checkpoints, progress)
	switch {
	case err != nil:
		return from, err
	case !found:
		return from, fmt.Errorf("%w, and none of %d checkpoints is within the log", lost, len(checkpoints))
	}
	violations, err := postgres.CheckCheckpoint(ctx, source, from)
	if err == nil && len(violations) > 0 {
		err = fmt.Errorf("%w, and the checkpoint cannot be used: %s", lost, violations[0].Detail)
	}
	return from, err
}

// choose opens the log at the oldest checkpoint before which it has
// what is recalled or, where there is none, at the newest that it
// reaches.
func (r *Rebuild) choose(ctx context.Context, source pgx.Tx, checkpoints []ledger.Checkpoint, progress postgres.Progress) (
	chosen ledger.Checkpoint, found bool, err error) {
	for _, c := range checkpoints {
		since, err := postgres.PositionsBefore(ctx, source, c, recalled)
		if err != nil {
			return chosen, false, err
		}
		if r.Log.Open(ctx, c.Topic, since, progress.Logs) == nil {
			return c, true, r.Log.Open(ctx, c.Topic, c.Positions, progress.Logs)
		}
	}
	for _, c := range slices.Backward(checkpoints) {
		if r.Log.Open(ctx, c.Topic, c.Positions, progress.Logs) == nil {
			return c, true, nil
		}
	}
	return chosen, false, nil
}

// make brings the target to the progress of the source.
func (r *Rebuild) make(ctx context.Context, source pgx.Tx, from ledger.Checkpoint, progress postgres.Progress) (decisions int, err error) {
	err = pg.InTxAsSystem(ctx, r.Target, func(tx pgx.Tx) error { return postgres.CopyKept(ctx, tx, progress.Decision, r.Tenants) })
	if err != nil {
		return 0, err
	}
	if !from.Hour.IsZero() {
		if err := r.load(ctx, source, from); err != nil {
			return 0, err
		}
	}
	if decisions, err = r.replay(ctx, source, from, progress); err != nil {
		return decisions, err
	}
	err = r.inSnapshot(ctx, func(tx pgx.Tx) error { return postgres.CopyOutcomes(ctx, tx, from, r.Outcomes) })
	if err != nil {
		return decisions, err
	}
	err = pg.InTxAsSystem(ctx, r.Target, func(tx pgx.Tx) error { return postgres.SetProgress(ctx, tx, progress) })
	if err != nil {
		return decisions, err
	}
	return decisions, r.seal(ctx, from, progress.Sealed)
}

// load begins the target with a checkpoint and the history before it.
func (r *Rebuild) load(ctx context.Context, source pgx.Tx, from ledger.Checkpoint) error {
	days, err := postgres.TransferDays(ctx, source)
	if err != nil {
		return err
	}
	since, err := postgres.PositionsBefore(ctx, source, from, recalled)
	if err != nil {
		return err
	}
	err = pg.InTxAsSystem(ctx, r.Target, func(tx pgx.Tx) error { return postgres.EnsureDays(ctx, tx, days...) })
	if err != nil {
		return fmt.Errorf("cannot create the days of transfers: %w", err)
	}
	err = r.inSnapshot(ctx, func(tx pgx.Tx) error { return postgres.LoadCheckpoint(ctx, tx, from) })
	if err != nil {
		return err
	}
	return r.Log.Recall(ctx, since)
}

// inSnapshot writes to the target what the source has at one instant.
func (r *Rebuild) inSnapshot(ctx context.Context, do func(tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, r.Target, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
		if err := pg.AsSystem(ctx, tx); err != nil {
			return err
		}
		return do(tx)
	})
}

// seal writes the links of all hours from a checkpoint on or, without
// one, first of those whose seals are gone.
func (r *Rebuild) seal(ctx context.Context, from ledger.Checkpoint, hours []time.Time) (err error) {
	hours = slices.DeleteFunc(slices.Clone(hours), func(hour time.Time) bool { return hour.Before(from.Hour) })
	if len(hours) == 0 {
		return nil
	}
	if from.Hour.IsZero() {
		if err := integrity.SealAgain(ctx, r.Target, hours[0]); err != nil {
			return err
		}
	}
	err = pg.InTxAsSystem(ctx, r.Target, func(tx pgx.Tx) error { return postgres.CopyCuts(ctx, tx, hours[len(hours)-1]) })
	for _, hour := range hours {
		if err != nil {
			break
		}
		err = pg.InTxAsSystem(ctx, r.Target, func(tx pgx.Tx) error { return postgres.SealCut(ctx, tx, hour) })
	}
	return err
}

// replay repeats each decision between the entries booked before and
// after it.
func (r *Rebuild) replay(ctx context.Context, source pgx.Tx, from ledger.Checkpoint, progress postgres.Progress) (decisions int, err error) {
	last, err := r.decided(ctx)
	if err != nil {
		return 0, err
	}
	for decided, err := range postgres.AllDecided(ctx, source, r.Work.Decisions, from.Decision) {
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

// decided returns the number of decisions about each organization that
// the target begins with.
func (r *Rebuild) decided(ctx context.Context) (last map[string]int64, err error) {
	err = pg.InTxAsSystem(ctx, r.Target, func(tx pgx.Tx) error {
		last, err = postgres.NumbersOfDecisions(ctx, tx)
		return err
	})
	return last, err
}

func (r *Rebuild) redo(ctx context.Context, decided postgres.Decided) error {
	return pg.InTxAsSystem(ctx, r.Target, func(tx pgx.Tx) error { return r.Work.Redo(ctx, tx, decided) })
}
