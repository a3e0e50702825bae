package allinone

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/lifecycle"
)

// Intervals of a start. It has no limit: whatever takes long, such as
// reading a long log, would take as long the next time.
const (
	readyPoll   = 20 * time.Millisecond
	demoRetry   = time.Second
	startReport = 5 * time.Second // between lines of the log
)

// prepare waits until all modules can serve, and creates the demo
// organization.
func (a *App) prepare(ctx context.Context) error {
	a.awaitReady(ctx)
	if !a.config.NoDemo && ctx.Err() == nil {
		if err := a.awaitDemo(ctx); err != nil {
			return fmt.Errorf("cannot set the demo organization up: %w", err)
		}
	}
	if ctx.Err() == nil {
		close(a.started)
	}
	return ctx.Err()
}

func (a *App) awaitReady(ctx context.Context) {
	begun := time.Now()
	report := time.NewTicker(startReport)
	defer report.Stop()
	for ; ctx.Err() == nil; lifecycle.Pause(ctx, readyPoll) {
		_, err := a.gateway.Ready(ctx)
		if err == nil {
			return
		}
		select {
		case <-report.C:
			a.logger.Warn("not ready yet", slog.Duration("after", time.Since(begun).Round(time.Second)), slog.String("error", err.Error()))
		default:
		}
	}
}

// reportBacklog logs what the modules have yet to apply while they do,
// for people who watch weir run: their consumers do so as information.
func (a *App) reportBacklog(ctx context.Context) error {
	reported := false
	for lifecycle.Pause(ctx, startReport); ctx.Err() == nil; lifecycle.Pause(ctx, startReport) {
		behind, _ := a.gateway.Ready(ctx) // others log what is not ready
		switch {
		case len(behind) > 0:
			a.logger.Warn("catching up", slog.String("behind", describe(behind)))
		case reported:
			a.logger.Warn("caught up")
		}
		reported = len(behind) > 0
	}
	return nil
}

// describe names parts with how much is done and the time for the rest.
func describe(behind []httpapi.Backlog) string {
	parts := make([]string, len(behind))
	for i, b := range behind {
		parts[i] = fmt.Sprintf("%s %.0f %%", b.Part, 100*b.Done)
		if b.SecondsLeft > 0 {
			parts[i] += fmt.Sprintf(", %s left", time.Duration(b.SecondsLeft)*time.Second)
		}
	}
	return strings.Join(parts, "; ")
}

// awaitDemo tries again what may succeed later.
func (a *App) awaitDemo(ctx context.Context) error {
	for {
		err := a.ensureDemo(ctx)
		var problem *client.Problem
		if err == nil || ctx.Err() != nil || !errors.As(err, &problem) || !problem.Temporary() {
			return err
		}
		a.logger.Warn("cannot set the demo organization up yet", slog.String("error", err.Error()))
		lifecycle.Pause(ctx, demoRetry)
	}
}
