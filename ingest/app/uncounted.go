package app

import (
	"context"
	"log/slog"
	"time"

	"github.com/weirlog/weir/shared/lifecycle"
)

// retryDelay is the delay after a failure.
const retryDelay = time.Second

// readUncounted finds once what was accepted before this process started and
// is not in the accounts. It runs after the accounts are read, as the
// gap starts where they end.
func (a *App) readUncounted(ctx context.Context) error {
	select {
	case <-a.accounts.Ready():
	case <-ctx.Done():
		return nil
	}
	for ctx.Err() == nil {
		charges, err := a.uncounted.Read(ctx, a.gate.Marker())
		if err == nil {
			for _, c := range charges {
				a.gate.Found(c)
			}
			a.uncountedRead.Store(true)
			break
		}
		a.base.Logger.Warn("cannot read the log behind the ledger yet", slog.String("error", err.Error()))
		lifecycle.Pause(ctx, retryDelay)
	}
	return nil
}

// gapInterval is how often it checks whether the ledger is far behind.
const gapInterval = 5 * time.Second

// sumUncounted keeps later starts of all processes short while the ledger is
// far behind.
func (a *App) sumUncounted(ctx context.Context) error {
	for ; ctx.Err() == nil; lifecycle.Pause(ctx, gapInterval) {
		if a.accounts.Complete() != nil {
			continue
		}
		if err := a.uncounted.Sum(ctx, a.gate.Marker()); err != nil && ctx.Err() == nil {
			a.base.Logger.Warn("cannot sum up the log behind the ledger yet", slog.String("error", err.Error()))
		}
	}
	return nil
}

// How often requests of unknown outcome are resolved, and how long after the
// publisher gave up a copy of one can still arrive at the broker.
const (
	resolveInterval = 5 * time.Second
	resolveAfter    = 30 * time.Second
)

// resolve finds, for requests of unknown outcome, the offsets below
// which they are if they are in the log.
func (a *App) resolve(ctx context.Context) error {
	for ; ctx.Err() == nil; lifecycle.Pause(ctx, resolveInterval) {
		before := a.base.Clock().Add(-resolveAfter)
		if !a.gate.Incomplete(before) {
			continue
		}
		ends, err := a.log.Ends(ctx)
		if err != nil {
			a.base.Logger.Warn("cannot resolve requests of unknown outcome yet", slog.String("error", err.Error()))
			continue
		}
		a.gate.Resolve(before, ends)
	}
	return nil
}
