package uncounted

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/pg"
)

// The limits of what is summed up.
const (
	MaxRunsForTest = maxRuns
	MaxRowsForTest = maxRows
	MinRunsForTest = minRuns
)

// SummedForTest is what a start reads from the database, and how many
// records it leaves to be read from the log.
func (g *Reader) SummedForTest(ctx context.Context, topic [16]byte, counted, ends ingest.Positions) (charges []ingest.Charge, left int64, err error) {
	charges, ranges, err := g.summed(ctx, topic, counted, ends)
	for _, r := range ranges {
		left += r.To - r.From
	}
	return charges, left, err
}

// TightenForTest has g keep as many runs and rows.
func (g *Reader) TightenForTest(runs int, rows int64) { g.tight = &limits{runs, rows} }

var errKilled = errors.New("killed before the commit")

// SumKilledForTest is Sum by a process that ends when it has
// summed and folded, before it commits.
func (g *Reader) SumKilledForTest(ctx context.Context, counted ingest.Positions) error {
	topic, ends, err := g.Log.Extent(ctx)
	if err != nil {
		return err
	}
	err = pg.InTx(ctx, g.Pool, func(tx pgx.Tx) error {
		s := &sum{limits: g.limits(), log: g.Log, tx: tx, topic: topic, counted: counted, ends: ends}
		if _, err := s.some(ctx); err != nil {
			return err
		}
		return errKilled
	})
	if errors.Is(err, errKilled) {
		return nil
	}
	return err
}
