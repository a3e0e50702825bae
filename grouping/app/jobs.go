package app

import (
	"context"
	"time"

	"github.com/weirlog/weir/shared/lifecycle"
)

// runJobs runs what is due from time to time. Several processes may do so.
func (a *App) runJobs(ctx context.Context) error {
	return lifecycle.Run(ctx,
		a.job(10*time.Second, a.groups.Decisions.ReopenDue, "cannot open groups again whose time is over"),
		a.job(2*time.Second, a.groups.Alerts.SendDue, "cannot send messages of alerts"),
		a.job(5*time.Second, a.groups.SourceMaps.Remap, "cannot map samples by source maps that came later"),
		a.job(10*time.Minute, a.archive, "cannot archive groups that are quiet"), // days decide
	)
}

func (a *App) job(every time.Duration, do func(context.Context) error, failed string) func(context.Context) error {
	return func(ctx context.Context) error {
		return lifecycle.Every(ctx, every, func(ctx context.Context) error {
			defer a.relay.Wake()
			return do(ctx)
		}, lifecycle.Warn(a.base.Logger, failed))
	}
}

// archive waits until what was in the log when it began is applied: errors of
// what seems quiet may be there.
func (a *App) archive(ctx context.Context) error {
	if _, behind := a.logs.Backlog(); !behind && a.logs.Ready() == nil {
		return a.groups.Decisions.Archive(ctx)
	}
	return nil
}
