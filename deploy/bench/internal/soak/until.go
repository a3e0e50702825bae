package soak

import (
	"context"
	"fmt"
	"time"

	"github.com/weirlog/weir/shared/lifecycle"
)

// Bounds for waiting on the modules' own work.
const (
	awaitTimeout = time.Minute
	awaitPoll    = 5 * time.Millisecond
)

// until returns once try is done or fails; what describes it.
func until(ctx context.Context, what string, try func(ctx context.Context) (done bool, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, awaitTimeout)
	defer cancel()
	for {
		done, err := try(ctx)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("waited for %s until %s: %w", awaitTimeout, what, ctx.Err())
		case err != nil || done:
			return err
		}
		lifecycle.Pause(ctx, awaitPoll)
	}
}
