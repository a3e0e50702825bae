package testenv

import (
	"context"
	"sync"
	"testing"
)

// Run runs run beside the test until stop is called or the test ends,
// and then waits for it. The test fails if run returns an error. stop
// may be called again.
func Run(t testing.TB, run func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("it did not end in order: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}
