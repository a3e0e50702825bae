package gap

import (
	"context"

	"github.com/weirlog/weir/ingest"
)

// SummedForTest is what a start reads from the database, and how many records it leaves to be read from the log.
func (g *Gap) SummedForTest(ctx context.Context, topic [16]byte, counted, ends ingest.Positions) (charges []ingest.Charge, left int64, err error) {
	charges, ranges, err := g.summed(ctx, topic, counted, ends)
	for _, r := range ranges {
		left += r.To - r.From
	}
	return charges, left, err
}
