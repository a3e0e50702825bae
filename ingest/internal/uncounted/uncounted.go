package uncounted

import (
	"context"
	"log/slog"
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
	err = pg.Snapshot(ctx, g.Pool, func(tx pgx.Tx) error {
		if err := pg.AsSystem(ctx, tx); err != nil {
			return err
		}
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
