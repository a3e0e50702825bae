package allinonetest

import (
	"context"
	"errors"
	"testing"

	"github.com/weirlog/weir/deploy/allinone"
)

// Run runs app until the test ends, and returns once it is ready. It
// must stop in order.
func Run(t testing.TB, app *allinone.App) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- app.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Errorf("did not stop in order: %v", err)
		}
	})
	select {
	case <-app.Started():
	case err := <-stopped:
		stopped <- nil
		t.Fatal(errors.Join(errors.New("did not start"), err))
	}
}
