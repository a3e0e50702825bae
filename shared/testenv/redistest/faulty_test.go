package redistest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/weirlog/weir/shared/testenv/fault/faulttest"
	"github.com/weirlog/weir/shared/testenv/redistest"
)

// Each fault has its effect, and ends.
func TestFaults(t *testing.T) {
	cache := redistest.Faulty(t)
	if answer, err := redistest.Command(t.Context(), cache.URL, "SET kept 1"); err != nil || answer != "+OK" {
		t.Fatalf("%q, %v", answer, err)
	}
	faulttest.Each(t, cache.Server, func(ctx context.Context) error {
		answer, err := redistest.Command(ctx, cache.URL, "EXISTS kept")
		if err == nil && answer != ":1" {
			err = errors.New(answer)
		}
		return err
	})
}
