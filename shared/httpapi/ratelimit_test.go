package httpapi_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/fairshare"
	"github.com/weirlog/weir/shared/httpapi"
)

func TestRateLimitHeaders(t *testing.T) {
	result := fairshare.Result{Scope: fairshare.ScopeKey, Limit: 60, Remaining: 7, Full: time.Unix(1_000, 1), RetryAfter: 1200 * time.Millisecond}
	header := http.Header{}
	httpapi.SetRateLimit(header, result)
	for name, want := range map[string]string{"X-RateLimit-Limit": "60", "X-RateLimit-Remaining": "7", "X-RateLimit-Reset": "1001", "X-RateLimit-Scope": "key"} {
		if got := header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	policy := httpapi.AppendPolicy(httpapi.AppendPolicy(nil, fairshare.ScopeOrganization, 300), fairshare.ScopeKey, 60)
	if want := `"organization";q=300;w=60, "key";q=60;w=60`; string(policy) != want {
		t.Errorf("RateLimit-Policy is %s, want %s", policy, want)
	}
	if got, want := string(httpapi.AppendRateLimit(nil, result, time.Unix(998, 0))), `"key";r=7;t=3`; got != want {
		t.Errorf("RateLimit is %s, want %s", got, want)
	}
	problem := httpapi.RateLimited(result, "API key")
	if problem.Status != http.StatusTooManyRequests || problem.Code != "rate_limited" || problem.Header.Get("Retry-After") != "2" {
		t.Errorf("the problem is %+v", problem)
	}
}
