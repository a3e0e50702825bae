package backend

import (
	"context"
	"time"
)

// pause between two tries of Retry.
const pause = 50 * time.Millisecond

// Retry tries until it works, and returns the last error when ctx ends.
func Retry(ctx context.Context, try func() error) error {
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}
