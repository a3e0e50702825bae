package lifecycle

import (
	"context"
	"log/slog"
	"time"
)

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
