package app_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/ingest/app"
	"github.com/weirlog/weir/shared/contract"
)

// The headers have the tightest level: what is left, and when it is
// full again. The first request beyond it is refused with Retry-After
// and takes no token.
func TestPostRateLimits(t *testing.T) {
	r := newRig(t)
	r.account("org_a", func(a *contract.Account) { a.RequestsPerMinute = 60 })
	wide, narrow := r.key("org_a", "prj_a", nil), r.key("org_a", "prj_b", func(c *contract.Credential) { c.RatePerMinute = 2 })
	now := time.Now()
	p := r.start(func(c *app.Config) { c.Clock = func() time.Time { return now } })

	for i := range 2 {
		got := p.post(narrow, bodyOf(entry("m")))
		if got.status != 200 || got.header.Get("X-RateLimit-Scope") != "key" || got.header.Get("X-RateLimit-Limit") != "2" || got.header.Get("X-RateLimit-Remaining") != strconv.Itoa(1-i) {
			t.Errorf("request %d: %d %v", i, got.status, got.header)
		}
	}
	got := p.post(narrow, bodyOf(entry("m")))
	reset, _ := strconv.ParseInt(got.header.Get("X-RateLimit-Reset"), 10, 64)
	if got.status != 429 || got.header.Get("Retry-After") != "30" || reset < now.Unix()+60 || reset > now.Unix()+61 {
		t.Errorf("refused: %d %v", got.status, got.header)
	}
	for i := range 58 {
		if got := p.post(wide, []byte("no JSON, and yet it counts")); got.status != 400 || got.header.Get("X-RateLimit-Remaining") != strconv.Itoa(57-i) || got.header.Get("X-RateLimit-Scope") != "organization" {
			t.Fatalf("request %d: %d %v", i, got.status, got.header)
		}
	}
	if got := p.post(wide, bodyOf(entry("m"))); got.status != 429 || got.header.Get("X-RateLimit-Remaining") != "0" || got.header.Get("X-RateLimit-Scope") != "organization" || got.header.Get("Retry-After") != "1" {
		t.Errorf("61st: %d %v", got.status, got.header)
	}
	policy := got.header.Get("RateLimit-Policy")
	if !strings.HasPrefix(policy, `"organization";q=60;w=60, "project";q=60;w=60, "key";q=2;w=60, "quota";q=1099511627776;qu="content-bytes";w=`) {
		t.Errorf("policy %q", policy)
	}
	if limit := got.header.Get("RateLimit"); !strings.HasPrefix(limit, `"key";r=0;t=60, "quota";r=`) {
		t.Errorf("limit %q", limit)
	}
}

// Requests without a valid key are limited by client address; valid
// keys, in header or body, are not.
func TestPostLimitsAnonymousClients(t *testing.T) {
	r := newRig(t)
	r.account("org_a", nil)
	key := r.key("org_a", "prj_a", nil)
	now := time.Now()
	p := r.start(func(c *app.Config) { c.Bodies.ClientsPerMinute = 3; c.Clock = func() time.Time { return now } })
	legacy := []byte(`{"api_key":"` + key + `","logs":[` + entry("m") + `]}`)
	for range 5 {
		if got := p.post("", legacy); got.status != 200 || got.header.Get("Deprecation") == "" || got.header.Get("Sunset") == "" || got.header.Get("Link") == "" {
			t.Fatalf("key in the body: %d %s %v", got.status, got.text, got.header)
		}
	}
	for range 3 {
		if got := p.post("weir_guess", bodyOf(entry("m"))); got.status != 401 {
			t.Fatalf("guess: %d", got.status)
		}
	}
	if got := p.post("weir_guess", bodyOf(entry("m"))); got.status != 429 || got.code() != "rate_limited" {
		t.Errorf("4th guess: %d %s", got.status, got.text)
	}
	if got := p.post(key, bodyOf(entry("m"))); got.status != 200 || got.header.Get("Deprecation") != "" {
		t.Errorf("valid key: %d", got.status)
	}
}
