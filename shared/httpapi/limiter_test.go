package httpapi_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/limitertest"
)

// An organization has half of the slots.
func TestLimiter(t *testing.T) {
	l := httpapi.NewLimiter(httpapi.LimiterConfig{Slots: 4, Module: "test", Noun: "reads"}, prometheus.NewRegistry())
	limitertest.Check(t, 4, 16, func(ctx context.Context, organization string, work func()) error {
		release, err := l.Acquire(ctx, organization)
		if err == nil {
			work()
			release()
		}
		return err
	})
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
		var problem *httpapi.Problem
		if !errors.As(err, &problem) || problem.Header.Get("Retry-After") != "2" || !strings.Contains(problem.Detail, "The changes before yours take too long") {
			t.Errorf("refused with %v", err)
		}
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
