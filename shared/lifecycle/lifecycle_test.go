package lifecycle_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

// A failure is logged and retried; the end of the context is not a
// failure, and ends the loop.
func TestEvery(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var log bytes.Buffer
	times := 0
	do := func(context.Context) error {
		if times++; times == 3 {
			cancel()
		}
		return errors.New("broken")
	}
	err := lifecycle.Every(ctx, time.Microsecond, do, lifecycle.Warn(slog.New(slog.NewTextHandler(&log, nil)), "cannot work"))
	if err != nil || times != 3 {
		t.Errorf("%d times, error %v", times, err)
	}
	if logged := strings.Count(log.String(), `level=WARN msg="cannot work" error=broken`); logged != 2 {
		t.Errorf("logged %q", log.String())
	}
}

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
