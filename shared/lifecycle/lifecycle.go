package lifecycle

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"
)

// Run runs every function until ctx ends or one fails; then it cancels
// the others and waits for all. A function may end with its context's
// error. Run returns the first real failure, or nil.
func Run(ctx context.Context, functions ...func(context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, function := range functions {
		group.Go(func() error { return orderly(ctx, function(ctx)) })
	}
	return group.Wait()
}

// orderly hides the error of a function whose context has ended.
func orderly(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// Every runs do now and after each interval until ctx ends, and passes
// its failures to failed.
func Every(ctx context.Context, interval time.Duration, do func(context.Context) error, failed func(context.Context, error)) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for ctx.Err() == nil { // select chooses at random if both are ready
		if err := do(ctx); err != nil && ctx.Err() == nil {
			failed(ctx, err)
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
	return nil
}

// Warn logs failures that a retry may end.
func Warn(logger *slog.Logger, what string) func(context.Context, error) {
	return func(ctx context.Context, err error) { logger.WarnContext(ctx, what, slog.String("error", err.Error())) }
}

// Pause waits, or ends early with ctx.
func Pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
