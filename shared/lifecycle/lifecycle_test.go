package lifecycle_test

import (
	"context"
	"errors"
	"testing"

	"github.com/weirlog/weir/shared/lifecycle"
)

func untilTold(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// A failed loop ends the process with its error; the others are
// stopped and awaited.
func TestRunEndsAllWhenOneFails(t *testing.T) {
	broken := errors.New("broken")
	ended := false
	err := lifecycle.Run(t.Context(),
		func(context.Context) error { return broken },
		func(ctx context.Context) error {
			defer func() { ended = true }()
			return untilTold(ctx)
		})
	if !errors.Is(err, broken) {
		t.Errorf("Run = %v, want %v", err, broken)
	}
	if !ended {
		t.Error("Run came back before every function had ended")
	}
}

// A requested stop is no failure.
func TestRunIsOrderlyWhenTheContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := lifecycle.Run(ctx, untilTold, untilTold); err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
}
