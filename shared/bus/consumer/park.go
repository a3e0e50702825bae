package consumer

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/consumer/internal/lanes"
	"github.com/weirlog/weir/shared/bus/consumer/internal/positions"
	"github.com/weirlog/weir/shared/bus/parked"
)

// park parks a record with the reason, or its place alone, and moves
// on, in one transaction.
func (a *assignment) park(ctx context.Context, w lanes.Work, reason error) error {
	c, r := a.consumer, w.Records[0]
	c.logger.Error("record cannot be applied, parking it", "partition", r.Partition, "offset", r.Offset, "error", reason)
	err := a.tx.Run(ctx, a.moverOf(w), w, func(ctx context.Context, tx pgx.Tx, _ []bus.Record) error {
		if err := positions.AsSystem(ctx, tx); err != nil {
			return err
		}
		erased, err := c.cfg.Erased(ctx, tx, r)
		if err != nil {
			return err
		}
		if erased {
			return parked.AddErased(ctx, tx, c.cfg.Group, r)
		}
		return parked.Add(ctx, tx, c.cfg.Group, r, reason)
	})
	if err == nil {
		c.metrics.Parked.Inc()
	}
	return err
}
