package app

import (
	"context"
	"time"
)

const trimInterval = time.Minute

// trim lets go of the memory that large bodies needed, so that a rare flood does not stay.
func (a *App) trim(ctx context.Context) error {
	for ctx.Err() == nil {
		pause(ctx, trimInterval)
		for _, buffers := range a.buffers {
			buffers.Trim()
		}
	}
	return nil
}
