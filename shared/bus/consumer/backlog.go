package consumer

import (
	"context"
	"math"
	"time"

	"github.com/weirlog/weir/shared/lifecycle"
)

// reportInterval is how often a backlog is logged. What is applied
// sooner is not mentioned.
const reportInterval = 5 * time.Second

// reportBacklog logs how far a backlog is applied, until it is.
func (a *assignment) reportBacklog(ctx context.Context) {
	logger := a.consumer.logger
	reported := false
	for {
		lifecycle.Pause(ctx, reportInterval)
		b, exists := a.consumer.Backlog()
		switch {
		case ctx.Err() != nil:
			return
		case exists && b.Records > 0:
			reported = true
			logger.Info("catching up", "records", b.Records, "done_percent", math.Floor(100*b.Done), "left", b.Left.Round(time.Second))
		case exists: // the brokers have not said yet how much it is
		case reported:
			logger.Info("caught up")
			return
		default:
			return
		}
	}
}
