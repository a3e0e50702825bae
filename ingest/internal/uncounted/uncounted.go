package uncounted

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/bus"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/shared/pg"
)

// databaseTimeout is how long a start waits for the database
// before it reads the log instead.
const databaseTimeout = 15 * time.Second

// A Reader reads the part of the log between the ledger's marker and the end.
type Reader struct {
	Log    *bus.Log
	Pool   *pgxpool.Pool
	Logger *slog.Logger

	tight *limits // of a test
}

// Read returns the charges between counted and the log's end of now.
func (g *Reader) Read(ctx context.Context, counted ingest.Positions) ([]ingest.Charge, error) {
	topic, ends, err := g.Log.Extent(ctx)
	if err != nil {
		return nil, err
	}
	sums, ranges, err := g.summed(ctx, topic, counted, ends)
	if err != nil {
		g.Logger.Warn("cannot read what the log behind the ledger comes to: reading the log itself", slog.String("error", err.Error()))
		sums, ranges = nil, whole(counted, ends)
	}
	charges, err := g.Log.Charges(ctx, ranges...)
	return append(sums, charges...), err
}

// whole returns the ranges of the gap.
func whole(counted, ends ingest.Positions) (ranges []bus.Range) {
	for partition, end := range ends {
		ranges = append(ranges, bus.Range{Partition: partition, From: counted[partition], To: end})
	}
	return ranges
}

// summed returns the sums of the gap's runs and the ranges left to read.
func (g *Reader) summed(ctx context.Context, topic [16]byte, counted, ends ingest.Positions) (sums []ingest.Charge, left []bus.Range, err error) {
	ctx, cancel := context.WithTimeout(ctx, databaseTimeout)
	defer cancel()
	err = pg.SnapshotAsSystem(ctx, g.Pool, func(tx pgx.Tx) error {
		known, err := postgres.UncountedRuns(ctx, tx, topic)
		if err != nil {
			return err
		}
		var runs []ingest.StretchRun
		for partition, end := range ends {
			taken := withoutMostlyCounted(behind(known[partition], counted[partition]), counted[partition])
			runs, left = append(runs, taken...), append(left, outside(taken, partition, counted[partition], end)...)
		}
		sums, err = postgres.UncountedCharges(ctx, tx, topic, runs)
		return err
	})
	return sums, left, err
}

// behind returns a partition's runs at an offset or after it, up to the
// first stretch without one.
func behind(runs []ingest.StretchRun, offset int64) (found []ingest.StretchRun) {
	next := ingest.StretchAt(0, offset).Number
	for _, r := range runs {
		switch {
		case r.To() <= offset:
		case r.First > next:
			return found
		default:
			found, next = append(found, r), r.After
		}
	}
	return found
}

// withoutMostlyCounted leaves out a first run whose uncounted rest is
// quickly read from the log. The counted part of a longer one counts
// twice until the ledger has passed it.
func withoutMostlyCounted(runs []ingest.StretchRun, counted int64) []ingest.StretchRun {
	if len(runs) > 0 && runs[0].From() < counted && runs[0].To()-counted <= ingest.StretchOffsets {
		return runs[1:]
	}
	return runs
}

// outside returns the ranges of a partition before and after its runs.
func outside(runs []ingest.StretchRun, partition int, counted, end int64) (ranges []bus.Range) {
	for _, r := range runs {
		if counted < r.From() {
			ranges = append(ranges, bus.Range{Partition: partition, From: counted, To: r.From()})
		}
		counted = r.To()
	}
	return append(ranges, bus.Range{Partition: partition, From: counted, To: end})
}

const (
	// minBehind is how many stretches of a partition the ledger must be
	// behind before they are summed, which is rare.
	minBehind = 2

	// stretchesPerTx and foldsPerTx bound what one transaction sums and folds.
	stretchesPerTx = 16
	foldsPerTx     = 8 * stretchesPerTx

	// maxRuns is the most runs of a partition. None is longer than two
	// shares of the gap: a thirty-second.
	maxRuns = 64

	// maxRows is the most rows for a start to read. With more
	// organizations runs get longer, down to minRuns of a partition.
	maxRows = 1_000_000
	minRuns = 2
)

// limits are maxRuns and maxRows, or a test's.
type limits struct {
	maxRuns int
	maxRows int64
}

// A sum is one transaction that sums stretches.
type sum struct {
	limits
	log     *bus.Log
	tx      pgx.Tx
	topic   [16]byte
	counted ingest.Positions
	ends    ingest.Positions
	known   map[int][]ingest.StretchRun
	rows    int64 // of charges
}

// Sum sums stretches of the gap and deletes counted ones, unless
// another process does so.
func (g *Reader) Sum(ctx context.Context, counted ingest.Positions) error {
	topic, ends, err := g.Log.Extent(ctx)
	if err != nil {
		return err
	}
	for more := true; more && err == nil && ctx.Err() == nil; {
		err = pg.InTx(ctx, g.Pool, func(tx pgx.Tx) error {
			s := &sum{limits: g.limits(), log: g.Log, tx: tx, topic: topic, counted: counted, ends: ends}
			more, err = s.some(ctx)
			return err
		})
	}
	return err
}

func (g *Reader) limits() limits {
	if g.tight != nil {
		return *g.tight
	}
	return limits{maxRuns, maxRows}
}

// some sums some stretches and reports whether there may be more.
func (s *sum) some(ctx context.Context) (more bool, err error) {
	if locked, err := postgres.LockUncounted(ctx, s.tx); err != nil || !locked {
		return false, err
	}
	if err := s.load(ctx); err != nil {
		return false, err
	}
	for range stretchesPerTx {
		next, found := s.due()
		if !found {
			return s.fold(ctx)
		}
		if err := s.save(ctx, next); err != nil {
			return false, err
		}
	}
	_, err = s.fold(ctx)
	return true, err
}

// load deletes counted runs and reads the others.
func (s *sum) load(ctx context.Context) (err error) {
	if err = postgres.ForgetRuns(ctx, s.tx, s.topic, s.counted); err != nil {
		return err
	}
	if s.known, err = postgres.UncountedRuns(ctx, s.tx, s.topic); err != nil {
		return err
	}
	s.rows, err = postgres.CountCharges(ctx, s.tx, s.topic)
	return err
}

// due returns a stretch to sum.
func (s *sum) due() (ingest.Stretch, bool) {
	for partition, end := range s.ends {
		counted := s.counted[partition]
		if end-counted < minBehind*ingest.StretchOffsets {
			continue
		}
		next := ingest.StretchAt(partition, counted)
		if runs := behind(s.known[partition], counted); len(runs) > 0 {
			next.Number = runs[len(runs)-1].After
		}
		if next.To() <= end {
			return next, true
		}
	}
	return ingest.Stretch{}, false
}

func (s *sum) save(ctx context.Context, stretch ingest.Stretch) error {
	charges, err := s.log.Charges(ctx, bus.Range{Partition: stretch.Partition, From: stretch.From(), To: stretch.To()})
	if err != nil {
		return fmt.Errorf("cannot sum up stretch %d of partition %d: %w", stretch.Number, stretch.Partition, err)
	}
	rows, err := postgres.SaveRun(ctx, s.tx, s.topic, stretch.Run(), charges)
	s.rows += rows
	s.known[stretch.Partition] = insert(s.known[stretch.Partition], stretch.Run())
	return err
}

// insert adds a run where it belongs.
func insert(runs []ingest.StretchRun, r ingest.StretchRun) []ingest.StretchRun {
	at, _ := slices.BinarySearchFunc(runs, r, func(a, b ingest.StretchRun) int { return cmp.Compare(a.First, b.First) })
	return slices.Insert(runs, at, r)
}

// fold joins runs if there are too many, and reports whether there still are.
func (s *sum) fold(ctx context.Context) (more bool, err error) {
	for range foldsPerTx {
		partition, at := s.foldable()
		if at < 0 {
			return false, nil
		}
		runs := s.known[partition]
		fewer, err := postgres.FoldRuns(ctx, s.tx, s.topic, runs[at], runs[at+1])
		if err != nil {
			return false, err
		}
		s.rows -= fewer
		runs[at].After = runs[at+1].After
		s.known[partition] = slices.Delete(runs, at+1, at+2)
	}
	return true, nil
}

// foldable returns where the partition with too many runs has two to
// join; -1: none has.
func (s *sum) foldable() (partition, at int) {
	longest := 0
	for p, runs := range s.known {
		if len(runs) > longest && ingest.FoldAt(runs) >= 0 {
			partition, longest = p, len(runs)
		}
	}
	if longest > s.maxRuns || longest > minRuns && s.rows > s.maxRows {
		return partition, ingest.FoldAt(s.known[partition])
	}
	return 0, -1
}
