package lifecycle_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlog/weir/shared/lifecycle"
)

// A pause lasts as long as requested, and no longer than its context.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		for _, asked := range []time.Duration{-time.Second, 0, time.Minute, 2 * time.Hour} {
			begun := time.Now()
			lifecycle.Pause(ctx, asked)
			if waited, want := time.Since(begun), min(max(asked, 0), 59*time.Minute); waited != want {
				t.Errorf("waited %s of %s, want %s", waited, asked, want)
			}
		}
	})
}
