package reading_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/reading"
)

// One organization has half of the turns and a bounded line: beyond it gets 429 with Retry-After, and
// another organization has its turn at once.
func TestTurns(t *testing.T) {
	turns := reading.NewTurns(4, prometheus.NewRegistry(), "test")
	leave := make([]func(), 2)
	for i := range leave {
		var err error
		if leave[i], err = turns.Enter(t.Context(), "noisy"); err != nil {
			t.Fatal(err)
		}
	}
	const asking = 20
	answers := make(chan error, asking)
	for range asking {
		go func() {
			done, err := turns.Enter(t.Context(), "noisy")
			if err == nil {
				done()
			}
			answers <- err
		}()
	}
	for range asking - 16 {
		var problem *httpapi.Problem
		if err := <-answers; !errors.As(err, &problem) || problem.Status != http.StatusTooManyRequests || problem.Header.Get("Retry-After") == "" {
			t.Errorf("refused with %v", err)
		}
	}
	done, err := turns.Enter(t.Context(), "quiet")
	if err != nil {
		t.Fatal(err)
	}
	done()
	for _, done := range leave {
		done()
	}
	for range 16 {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
}
