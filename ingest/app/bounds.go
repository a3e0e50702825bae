package app

import (
	"context"
	"slices"
	"time"

	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/cursorkey"
	"github.com/weirlog/weir/shared/inbox"
	"github.com/weirlog/weir/shared/prune"
)

// newPruner keeps all tables of the schema within their bounds.
func (a *App) newPruner() *prune.Pruner {
	return prune.New(prune.Config{
		Pool: a.base.Pool, Tables: a.tables,
		Fixed: slices.Concat(bus.Fixed(), []prune.Bound{cursorkey.Bound()}, postgres.UncountedBounds(), postgres.MergeBounds()),
		Clock: a.config.Clock, Metrics: a.base.Metrics, Logger: a.base.Logger,
	})
}

func (a *App) tables(clock func() time.Time) []prune.Table {
	return slices.Concat(postgres.Tables(clock), inbox.Tables(clock), a.config.Retention.Tables(clock),
		[]prune.Table{a.config.Deletions.Table(clock)})
}

// Prune removes expired rows at once; Run does so continuously.
func (a *App) Prune(ctx context.Context) error { return a.pruner.RunOnce(ctx) }

// Bounds returns the bounds of all tables of the schema.
func (a *App) Bounds() []prune.Bound { return a.pruner.Bounds() }
