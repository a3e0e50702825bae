package app

import (
	"context"
	"log/slog"
	"time"

	"github.com/weirlog/weir/ingest/internal/bus"
	"github.com/weirlog/weir/shared/lifecycle"
)

// replicasInterval is how often replicas are counted. Until then a new
// one and the others may each admit all that is left.
const replicasInterval = 2 * time.Second

// countReplicas divides quotas among the running replicas. While they
// can't be counted the last number holds.
func (a *App) countReplicas(ctx context.Context) error {
	for ; ctx.Err() == nil; lifecycle.Pause(ctx, replicasInterval) {
		replicas, err := bus.Replicas(ctx, a.config.Brokers, a.base.Dialer)
		if err != nil {
			if ctx.Err() == nil {
				a.base.Logger.Warn("cannot count the replicas of ingest", slog.String("error", err.Error()))
			}
			continue
		}
		a.gate.Divide(replicas)
		a.counted.Store(true)
	}
	return nil
}
