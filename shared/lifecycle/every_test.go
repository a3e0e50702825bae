package lifecycle_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/lifecycle"
)

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
