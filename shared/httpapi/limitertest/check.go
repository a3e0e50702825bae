package limitertest

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/weirlog/weir/shared/httpapi"
)

// Check checks that an organization that asks without pause has half of the
// slots and a bounded queue: beyond it gets 429 with Retry-After, and
// another is served at once. do does work for an organization in a slot.
func Check(t *testing.T, slots, waiting int, do func(ctx context.Context, organization string, work func()) error) {
	t.Helper()
	const tooMany = 4
	share := (slots + 1) / 2
	asking := share + waiting + tooMany
	begun, ended, finish := make(chan bool, asking), make(chan error, asking), make(chan bool)
	for range asking {
		go func() {
			ended <- do(t.Context(), "noisy", func() {
				begun <- true
				<-finish
			})
		}()
	}
	for range share {
		<-begun
	}
	for range tooMany {
		var problem *httpapi.Problem
		if err := <-ended; !errors.As(err, &problem) || problem.Status != http.StatusTooManyRequests || problem.Code != "overloaded" ||
			problem.Header.Get("Retry-After") == "" {
			t.Errorf("refused with %v", err)
		}
	}
	if len(begun) != 0 {
		t.Errorf("%d more are at work", len(begun))
	}
	if err := do(t.Context(), "quiet", func() {}); err != nil {
		t.Errorf("another organization: %v", err)
	}
	close(finish)
	for range share + waiting {
		if err := <-ended; err != nil {
			t.Errorf("one that waited: %v", err)
		}
	}
}
