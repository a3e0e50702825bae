package httpapi_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weirlog/weir/shared/httpapi"
)

// One organization has half of the turns and a bounded line: beyond it
// a request gets 429 with Retry-After, and another organization has its
// turn at once.
func TestLimiter(t *testing.T) {
	line := httpapi.NewLimiter(httpapi.LimiterConfig{Slots: 4, Module: "test", Noun: "reads"}, prometheus.NewRegistry())
	leave := make([]func(), 2)
	for i := range leave {
		var err error
		if leave[i], err = line.Acquire(t.Context(), "noisy"); err != nil {
			t.Fatal(err)
		}
	}
	const asking = 20
	answers := make(chan error, asking)
	for range asking {
		go func() {
			done, err := line.Acquire(t.Context(), "noisy")
			if err == nil {
				done()
			}
			answers <- err
		}()
	}
	for range asking - 16 {
		isRefused(t, <-answers, "Too many reads of your organization wait")
	}
	done, err := line.Acquire(t.Context(), "quiet")
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

// A request that waits too long is refused, under the configured name,
// and counted under the configured noun.
func TestLimiterTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics := prometheus.NewRegistry()
		line := httpapi.NewLimiter(httpapi.LimiterConfig{Slots: 2, PerOrganization: 1, Wait: 3 * time.Second, Module: "test", Noun: "decisions", Asked: "changes"}, metrics)
		leave, err := line.Acquire(t.Context(), "acme")
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		_, err = line.Acquire(t.Context(), "acme")
		isRefused(t, err, "The changes before yours take too long")
		if waited := time.Since(begun); waited != 3*time.Second {
			t.Errorf("refused after %s", waited)
		}
		const want = `
# HELP test_decisions_refused_total Decisions that were refused because their organization had its share, or their turn did not come.
# TYPE test_decisions_refused_total counter
test_decisions_refused_total{reason="line"} 0
test_decisions_refused_total{reason="wait"} 1
# HELP test_decisions_running Decisions at work.
# TYPE test_decisions_running gauge
test_decisions_running 1
# HELP test_decisions_waiting Decisions that wait for their turn.
# TYPE test_decisions_waiting gauge
test_decisions_waiting 0
`
		if err := testutil.GatherAndCompare(metrics, strings.NewReader(want)); err != nil {
			t.Error(err)
		}
		leave()
	})
}

func isRefused(t *testing.T, err error, because string) {
	t.Helper()
	var problem *httpapi.Problem
	if !errors.As(err, &problem) || problem.Status != http.StatusTooManyRequests || problem.Header.Get("Retry-After") != "2" ||
		!strings.Contains(problem.Detail, because) {
		t.Errorf("refused with %v, want because %q", err, because)
	}
}
