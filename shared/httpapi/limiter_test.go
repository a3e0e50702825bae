package httpapi_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/limitertest"
	"github.com/weirlog/weir/shared/testenv"
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
		testenv.Must(t, err)
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

// A client refused repeatedly is answered at a pace, also at the end of
// a flood, at most a second late each; another network, and other
// answers, at once.
func TestRefusalsArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refusals := httpapi.NewRefusals()
		loud, quiet := netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("192.0.2.2/32")
		refused := httpapi.NewProblem(http.StatusTooManyRequests, "rate_limited", "Too many.")
		took := func(network netip.Prefix, times int, err error) time.Duration {
			begun := time.Now()
			for range times {
				refusals.Pace(t.Context(), time.Now(), network, err)
			}
			return time.Since(begun)
		}
		if d := took(loud, 500, refused); d > 0 {
			t.Errorf("500 refusals are held back for %s", d)
		}
		if d := took(loud, 500, refused); d < 4*time.Second || d > 6*time.Second {
			t.Errorf("500 more take %s, want about 5 s", d)
		}
		if d := took(loud, 1000, httpapi.NewProblem(http.StatusUnauthorized, "invalid_api_key", "No.")) + took(loud, 1000, nil); d > 0 {
			t.Errorf("other answers are held back for %s", d)
		}
		var flood sync.WaitGroup
		begun := time.Now()
		for range 1500 {
			flood.Go(func() { refusals.Pace(t.Context(), time.Now(), loud, refused) })
		}
		synctest.Wait()
		if d := took(quiet, 100, refused); d > 0 {
			t.Errorf("another network is held back for %s", d)
		}
		flood.Wait()
		if d := time.Since(begun); d > time.Second {
			t.Errorf("the last of a flood is held back for %s", d)
		}
		time.Sleep(10 * time.Second)
		if d := took(loud, 400, refused); d > 0 {
			t.Errorf("ten seconds later 400 are held back for %s", d)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		begun = time.Now()
		for range 1000 {
			refusals.Pace(gone, time.Now(), loud, refused)
		}
		if d := time.Since(begun); d < 4*time.Second {
			t.Errorf("a thousand whose clients leave at once take %s", d)
		}
	})
}

// The number of held refusals is bounded.
func TestHeldRefusalsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refusals, refused := httpapi.NewRefusals(), httpapi.NewProblem(http.StatusTooManyRequests, "rate_limited", "Too many.")
		network := netip.MustParsePrefix("192.0.2.1/32")
		var held sync.WaitGroup
		for range 2 * (500 + 2048) { // more than the rate and the bound let pass, also where several take the last free one
			held.Go(func() { refusals.Pace(t.Context(), time.Now(), network, refused) })
		}
		synctest.Wait()
		begun := time.Now()
		refusals.Pace(t.Context(), time.Now(), network, refused)
		if d := time.Since(begun); d > 0 {
			t.Errorf("one more is held for %s", d)
		}
		held.Wait()
	})
}

// A network with too many requests without a credential is refused
// until a minute has passed; another behind the same proxy is not.
func TestAnonymousLimit(t *testing.T) {
	now := time.Now()
	limit := httpapi.NewAnonymousLimit(600, []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}, func() time.Time { return now })
	handler := httpapi.Handle(func(_ http.ResponseWriter, r *http.Request) error { return limit.Admit(r) })
	ask := func(client string) int {
		r := httptest.NewRequest(http.MethodGet, "/v1/openapi.json", nil)
		r.RemoteAddr = "192.0.2.1:1234"
		r.Header.Set("X-Forwarded-For", client)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code == http.StatusTooManyRequests && w.Header().Get("Retry-After") == "" {
			t.Error("a refusal does not say when to ask again")
		}
		return w.Code
	}
	for range 600 {
		if code := ask("203.0.113.7"); code != http.StatusOK {
			t.Fatalf("within the limit the answer is %d", code)
		}
	}
	if code := ask("203.0.113.7"); code != http.StatusTooManyRequests {
		t.Errorf("beyond the limit the answer is %d", code)
	}
	if code := ask("203.0.113.8"); code != http.StatusOK {
		t.Errorf("another network's answer is %d", code)
	}
	now = now.Add(time.Minute)
	if code := ask("203.0.113.7"); code != http.StatusOK {
		t.Errorf("a minute later the answer is %d", code)
	}
}
