package uncounted

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/bus"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/shared/pg"
)

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
