package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/testenv"
)

// idempotency: the same key with the same body is one request, with
// another body an error.
func idempotency(t *testing.T, ctx context.Context, in installation, to tenant, m *maker, h *history) {
	entries := m.some(10)
	batch := client.Batch{Body: body(texts(entries)...), IdempotencyKey: "twice"}
	for range 2 {
		accepted, err := in.api.Post(ctx, to.key, batch)
		must(t, err)
		checkAccepted(t, "idempotent", accepted, entries, 0)
	}
	h.accepted("idempotent", entries)
	batch.Body = body(m.plain().text)
	_, err := in.api.Post(ctx, to.key, batch)
	must(t, wantProblem(err, 400, "idempotency_key_reused"))
}

// refusals: requests without a valid key, in plaintext, or for unknown paths.
func refusals(t *testing.T, ctx context.Context, in installation, main tenant) {
	post := plainly(body((&maker{mark: "refused"}).plain().text))
	for name, key := range map[string]string{"missing_api_key": "", "invalid_api_key": alter(main.key)} {
		answer, err := in.api.Call(ctx, post.Request(key))
		must(t, err)
		if err := wantProblem(answer.Problem(), 401, name); err != nil || answer.Header.Get("WWW-Authenticate") != "ApiKey" {
			t.Errorf("key %q: %v, %v", key, err, answer.Header)
		}
	}
	for path, status := range map[string]int{"/nothing": 404, "/api-keys/none/revoke": 405} {
		answer, err := in.api.Call(ctx, client.Request{Method: "GET", Path: path, Header: map[string]string{"Authorization": "Bearer " + in.operator}})
		must(t, err)
		if err := wantProblem(answer.Problem(), status, ""); err != nil {
			t.Errorf("GET %s: %v", path, err)
		}
	}
	plainHTTP(t, ctx, in, main.key)
	answer, err := in.api.Call(ctx, post.Request(main.key+"0"))
	must(t, err)
	must(t, wantProblem(answer.Problem(), 401, "invalid_api_key"))
}

// plainHTTP is always refused, never redirected.
func plainHTTP(t *testing.T, ctx context.Context, in installation, key string) {
	t.Helper()
	base, err := url.Parse(in.api.Base())
	must(t, err)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+base.Host+"/v1/logs", strings.NewReader(`{"logs":[]}`))
	must(t, err)
	r.Header.Set("X-Api-Key", key)
	answer, err := (&http.Client{Timeout: time.Minute}).Do(r)
	must(t, err)
	defer answer.Body.Close()
	if answer.StatusCode != 403 || !answer.Close {
		t.Errorf("plain HTTP is answered with %s, connection closed: %t", answer.Status, answer.Close)
	}
}

// revocation: a second after the answer to its revocation, every
// process refuses a key. The answer may itself wait until the
// revocation is in force at its own process.
func revocation(t *testing.T, ctx context.Context, in installation) {
	to := in.tenant(t, ctx, "revoked", "scale")
	m, h := &maker{mark: "revoked"}, &history{}
	post := func() error {
		entries := m.some(1)
		_, err := in.api.Post(ctx, to.key, plainly(body(texts(entries)...)))
		if err == nil {
			h.accepted("before the revocation", entries)
		}
		return err
	}
	must(t, post())
	must(t, in.api.RevokeAPIKey(ctx, in.operator, to.keyID, "leaked"))
	begun := time.Now()
	testenv.Eventually(t, quietTimeout, func() error { return wantProblem(post(), 401, "api_key_revoked") })
	t.Logf("in force %s after the answer", time.Since(begun).Round(time.Millisecond))
	must(t, in.api.RevokeAPIKey(ctx, in.operator, to.keyID, "again"))
	must(t, wantProblem(post(), 401, "api_key_revoked"))
	sum, err := h.check(texts(h.all()))
	must(t, err)
	testenv.Eventually(t, viewTimeout, func() error { return checkBalance(ctx, in, to, sum) })
}

// all returns the entries of a history.
func (h *history) all() (entries []sent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, post := range h.posts {
		entries = append(entries, post.entries...)
	}
	return entries
}

// quota: what the quota covers is accepted, what it does not cover is
// refused whole, and the ledger agrees to the byte.
func quota(t *testing.T, ctx context.Context, in installation) {
	to := in.tenant(t, ctx, "exhausted", "bootstrapper")
	m, h := &maker{mark: "exhausted"}, &history{}
	var used int64
	for {
		entries := []sent{m.sized(9_000, 2_000)}
		accepted, err := in.api.Post(ctx, to.key, plainly(body(texts(entries)...)))
		if err != nil {
			must(t, wantProblem(err, 429, "quota_exceeded"))
			wantRetryAfter(t, err)
			break
		}
		h.accepted("within the quota", entries)
		if used += accepted.BytesUsed; used > quotaBytes {
			t.Fatalf("%d bytes were accepted, the quota is %d", used, quotaBytes)
		}
	}
	if used < quotaBytes/2 {
		t.Errorf("refused after %d of %d bytes", used, quotaBytes)
	}
	_, err := in.api.Post(ctx, to.key, plainly(body(m.sized(9_000, 2_000).text)))
	must(t, wantProblem(err, 429, "quota_exceeded"))
	verify(t, ctx, in, to, h)
}

// rate: the tier indie admits 60 requests at once and one a second;
// then it refuses with a Retry-After.
func rate(t *testing.T, ctx context.Context, in installation) {
	to := in.tenant(t, ctx, "hasty", "indie")
	post := plainly(body((&maker{mark: "hasty"}).plain().text)).Request(to.key)
	for i := range 120 {
		answer, err := in.api.Call(ctx, post)
		must(t, err)
		checkRateHeaders(t, answer)
		if answer.Status == 200 {
			continue
		}
		must(t, wantProblem(answer.Problem(), 429, "rate_limited"))
		wantRetryAfter(t, answer.Problem())
		t.Logf("limited at request %d", i+1)
		return
	}
	t.Error("120 requests at once, and none was limited")
}

func checkRateHeaders(t *testing.T, answer client.Answer) {
	t.Helper()
	limit, remaining, reset := answer.Header.Get("X-RateLimit-Limit"), answer.Header.Get("X-RateLimit-Remaining"), answer.Header.Get("X-RateLimit-Reset")
	seconds, err := strconv.ParseInt(reset, 10, 64)
	if limit != "60" || remaining == "" || err != nil || seconds < time.Now().Unix()-1 {
		t.Errorf("rate headers: limit %q, remaining %q, reset %q", limit, remaining, reset)
	}
}

func wantRetryAfter(t *testing.T, err error) {
	t.Helper()
	var problem *client.Problem
	if !errors.As(err, &problem) || problem.RetryAfter < time.Second {
		t.Error(fmt.Errorf("no Retry-After of a second or more: %w", err))
	}
}
