package app

import (
	"context"
	"log/slog"
	"slices"

	sharedbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
)

// runLogStore keeps what the log holds. It begins when the log is there: a member that joins its group before the topic
// exists is given no partitions, and is not called again when it does.
func (a *App) runLogStore(ctx context.Context) error {
	if err := a.ensureTopic(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	return a.consumer.Run(ctx)
}

// ensureTopic creates weir.logs.v1, which ingest writes, where nobody has. It tries until there is a broker.
func (a *App) ensureTopic(ctx context.Context) error {
	own := slices.DeleteFunc(contract.Topics(a.config.LogPartitions, a.config.LogRetention), func(t contract.Topic) bool {
		return t.Name != contract.TopicLogs
	})
	for ctx.Err() == nil {
		err := sharedbus.EnsureTopics(ctx, a.config.Brokers, own)
		if err == nil {
			break
		}
		if ctx.Err() == nil {
			a.logger.Warn("cannot create the log yet", slog.String("error", err.Error()))
		}
		pause(ctx, retry)
	}
	return nil
}
