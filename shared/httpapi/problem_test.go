package httpapi_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/fairshare"
	"github.com/weirlog/weir/shared/httpapi"
)

func TestRedact(t *testing.T) {
	digits := strings.Repeat("0a", 24)
	for text, want := range map[string]string{
		"weir_" + digits: "weir_[redacted]",
		"There is no key \"weirsvc_" + digits + "\".":                    "There is no key \"weirsvc_[redacted]\".",
		"weirses_" + digits + "00 twice weir_" + strings.ToUpper(digits): "weirses_[redacted] twice weir_[redacted]",
		"weir_ab12…9f3e":     "weir_ab12…9f3e",
		"weir_" + digits[1:]: "weir_" + digits[1:],
	} {
		if got := httpapi.Redact(text); got != want {
			t.Errorf("Redact(%q) = %q, want %q", text, got, want)
		}
	}
}

// A credential in the wrong place is neither shown in the answer nor
// logged, whatever fails.
func TestProblemsShowNoCredential(t *testing.T) {
	digits := strings.Repeat("0a", 24)
	var log bytes.Buffer
	router := httpapi.NewRouter(httpapi.Options{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), Clock: time.Now})
	router.Get("/v1/things/{thing}", httpapi.Handle(func(_ http.ResponseWriter, r *http.Request) error {
		if r.URL.Query().Has("broken") {
			return errors.New("broken for " + r.URL.Path)
		}
		return httpapi.Invalid("/things/"+r.PathValue("thing"), "invalid", "There is no "+r.URL.Path, "Correct "+r.URL.Path)
	}))
	for _, path := range []string{"/v1/things/weir_" + digits, "/v1/things/weir_" + digits + "?broken", "/v1/nothing/weir_" + digits, "/v1/things/1?x=weir_" + digits + "%zz"} {
		answer := httptest.NewRecorder()
		router.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		if answer.Code < 400 || strings.Contains(answer.Body.String(), digits) {
			t.Errorf("GET %s: %d %s", path, answer.Code, answer.Body)
		}
	}
	if strings.Contains(log.String(), digits) {
		t.Errorf("it is logged: %s", &log)
	}
}

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
