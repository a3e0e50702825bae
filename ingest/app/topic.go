package app

import (
	"context"
	"log/slog"
	"time"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/lifecycle"
)

// runLogStore stores the log once the topic exists: a group member that
// joins earlier never gets partitions.
func (a *App) runLogStore(ctx context.Context) error {
	if err := a.ensureTopics(ctx); err != nil {
		return err
	}
	for {
		err := a.migrate(ctx)
		if err == nil {
			break
		}
		if ended := ctx.Err(); ended != nil {
			return ended
		}
		a.base.Logger.Warn("cannot keep entries yet: the log holds them", slog.String("error", err.Error()))
		lifecycle.Pause(ctx, retryDelay)
	}
	return lifecycle.Run(ctx, a.consumer.Run, a.tenants.Run, a.eraser.Run, a.pruner.Run, a.merger.Run, a.sumUncounted)
}

// migrateTimeout is how long a start waits for the schema. runLogStore
// continues without a deadline, which would restart large migrations forever.
const migrateTimeout = 10 * time.Second

// migrateAtStart is migrate for a start, which accepts entries without
// the database.
func (a *App) migrateAtStart(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, migrateTimeout)
	defer cancel()
	return a.migrate(ctx)
}

// migrate brings the schema up to date, once, and reads the
// cursor key. It may wait for another process.
func (a *App) migrate(ctx context.Context) error {
	if a.migrated {
		return nil
	}
	err := a.base.Migrate(ctx, Schema())
	a.migrated = err == nil
	return err
}

// ensureTopics creates ingest's topics where they are missing.
// It retries until there is a broker.
func (a *App) ensureTopics(ctx context.Context) error {
	for ctx.Err() == nil {
		err := a.base.EnsureTopics(ctx, contract.Topics(a.config.LogPartitions, a.config.LogRetention))
		if err == nil {
			break
		}
		if ctx.Err() == nil {
			a.base.Logger.Warn("cannot create the topics yet", slog.String("error", err.Error()))
		}
		lifecycle.Pause(ctx, retryDelay)
	}
	return nil
}
