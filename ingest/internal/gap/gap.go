package gap

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/bus"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/shared/pg"
)

// worthIt is how many stretches of a partition the ledger is behind before they are summed, which
// is rare.
const worthIt = 2

// atOnce is how many stretches one transaction sums up.
const atOnce = 16

// databasePatience is how long a start waits for the database before it reads the log instead.
const databasePatience = 15 * time.Second

// A Gap is the stretch of the log between the ledger's marker and the end.
type Gap struct {
	Log    *bus.Log
	Pool   *pgxpool.Pool
	Logger *slog.Logger
}

// Read returns what was accepted behind counted, up to the ends that the log has now.
func (g *Gap) Read(ctx context.Context, counted ingest.Positions) ([]ingest.Charge, error) {
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

// whole are the ranges of the gap.
func whole(counted, ends ingest.Positions) (ranges []bus.Range) {
	for partition, end := range ends {
		ranges = append(ranges, bus.Range{Partition: partition, From: counted[partition], To: end})
	}
	return ranges
}

// summed returns what the summed stretches of the gap come to, and the ranges that are left to
// read.
func (g *Gap) summed(ctx context.Context, topic [16]byte, counted, ends ingest.Positions) (sums []ingest.Charge, left []bus.Range, err error) {
	ctx, cancel := context.WithTimeout(ctx, databasePatience)
	defer cancel()
	err = pg.Snapshot(ctx, g.Pool, func(tx pgx.Tx) error {
		if err := pg.AsSystem(ctx, tx); err != nil {
			return err
		}
		known, err := postgres.Summed(ctx, tx, topic)
		if err != nil {
			return err
		}
		var runs []postgres.StretchRun
		for partition, end := range ends {
			from, to := run(known, partition, counted[partition])
			runs, left = append(runs, postgres.StretchRun{From: from, To: to}), append(left, outside(counted[partition], from, to, end)...)
		}
		sums, err = postgres.SumStretches(ctx, tx, topic, runs)
		return err
	})
	return sums, left, err
}

// run are the known consecutive stretches from the first that begins at or after an offset.
func run(known map[ingest.Stretch]bool, partition int, offset int64) (from, to ingest.Stretch) {
	from = ingest.StretchAt(partition, offset)
	for to = from; known[to]; to = to.Next() {
	}
	return from, to
}

// outside are the ranges of a partition before and behind a run of stretches.
func outside(counted int64, from, to ingest.Stretch, end int64) []bus.Range {
	if from == to {
		return []bus.Range{{Partition: from.Partition, From: counted, To: end}}
	}
	return []bus.Range{{Partition: from.Partition, From: counted, To: from.From()}, {Partition: from.Partition, From: to.From(), To: end}}
}

// Sum sums stretches that the ledger is behind and deletes counted ones, unless another process
// does so.
func (g *Gap) Sum(ctx context.Context, counted ingest.Positions) error {
	topic, ends, err := g.Log.Extent(ctx)
	if err != nil {
		return err
	}
	for more := true; more && err == nil && ctx.Err() == nil; {
		err = pg.InTx(ctx, g.Pool, func(tx pgx.Tx) error {
			more, err = g.sumSome(ctx, tx, topic, counted, ends)
			return err
		})
	}
	return err
}

// sumSome sums up some stretches, and reports whether there may be more to do.
func (g *Gap) sumSome(ctx context.Context, tx pgx.Tx, topic [16]byte, counted, ends ingest.Positions) (more bool, err error) {
	if locked, err := postgres.LockGap(ctx, tx); err != nil || !locked {
		return false, err
	}
	known, err := postgres.Summed(ctx, tx, topic)
	if err != nil {
		return false, err
	}
	for range atOnce {
		next, found := due(known, counted, ends)
		if !found {
			return false, postgres.ForgetStretches(ctx, tx, topic, counted)
		}
		if err := g.sum(ctx, tx, topic, next); err != nil {
			return false, err
		}
		known[next] = true
	}
	return true, nil
}

func (g *Gap) sum(ctx context.Context, tx pgx.Tx, topic [16]byte, s ingest.Stretch) error {
	charges, err := g.Log.Charges(ctx, bus.Range{Partition: s.Partition, From: s.From(), To: s.To()})
	if err != nil {
		return fmt.Errorf("cannot sum up stretch %d of partition %d: %w", s.Number, s.Partition, err)
	}
	return postgres.SaveStretch(ctx, tx, topic, s, charges)
}

// due is a stretch that is worth to be summed up.
func due(known map[ingest.Stretch]bool, counted, ends ingest.Positions) (ingest.Stretch, bool) {
	for partition, end := range ends {
		if end-counted[partition] < worthIt*ingest.StretchOffsets {
			continue
		}
		if _, next := run(known, partition, counted[partition]); next.To() <= end {
			return next, true
		}
	}
	return ingest.Stretch{}, false
}
