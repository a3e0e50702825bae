package snapshot_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/shared/httpapi"
)

// An organization under load has half of the places and a bounded
// queue; beyond it gets 429. Another is served at once.
func TestReadsTakeTurns(t *testing.T) {
	l := ledgertest.New(t)
	l.Start(t, "noisy", ledger.Scale)
	l.Start(t, "quiet", ledger.Scale)
	var release []func()
	for range ledgertest.Readers / 2 {
		done, err := l.Reads.Limiter.Acquire(t.Context(), "noisy")
		if err != nil {
			t.Fatal(err)
		}
		release = append(release, done)
	}
	const asking = 20
	answers := make(chan error, asking)
	for range asking {
		go func() {
			_, err := l.Balances.Balance(t.Context(), "noisy", time.Time{})
			answers <- err
		}()
	}
	var problem *httpapi.Problem
	if err := <-answers; !errors.As(err, &problem) || problem.Status != http.StatusTooManyRequests || problem.Code != "overloaded" {
		t.Errorf("one too many is answered with %v", err)
	}
	if _, err := l.Balances.Balance(t.Context(), "quiet", time.Time{}); err != nil {
		t.Errorf("another organization: %v", err)
	}
	for _, done := range release {
		done()
	}
	for range asking - 1 {
		if err := <-answers; err != nil && !errors.As(err, &problem) {
			t.Error(err)
		}
	}
}
