package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

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
		testenv.Must(t, err)
		checkAccepted(t, "idempotent", accepted, entries, 0)
	}
	h.accepted("idempotent", entries)
	batch.Body = body(m.plain().text)
	_, err := in.api.Post(ctx, to.key, batch)
	testenv.Must(t, wantProblem(err, 400, "idempotency_key_reused"))
}

// refusals: requests without a valid key, in plaintext, or for unknown paths.
func refusals(t *testing.T, ctx context.Context, in installation, main tenant) {
	post := plainly(body((&maker{mark: "refused"}).plain().text))
	for name, key := range map[string]string{"missing_api_key": "", "invalid_api_key": alter(main.key)} {
		answer, err := in.api.Call(ctx, post.Request(key))
		testenv.Must(t, err)
		if err := wantProblem(answer.Problem(), 401, name); err != nil || answer.Header.Get("WWW-Authenticate") != "ApiKey" {
			t.Errorf("key %q: %v, %v", key, err, answer.Header)
		}
	}
	for path, status := range map[string]int{"/nothing": 404, "/api-keys/none/revoke": 405} {
		answer, err := in.api.Call(ctx, client.Request{Method: "GET", Path: path, Header: map[string]string{"Authorization": "Bearer " + in.operator}})
		testenv.Must(t, err)
		if err := wantProblem(answer.Problem(), status, ""); err != nil {
			t.Errorf("GET %s: %v", path, err)
		}
	}
	plainHTTP(t, ctx, in, main.key)
	answer, err := in.api.Call(ctx, post.Request(main.key+"0"))
	testenv.Must(t, err)
	testenv.Must(t, wantProblem(answer.Problem(), 401, "invalid_api_key"))
}

// plainHTTP is always refused, never redirected.
func plainHTTP(t *testing.T, ctx context.Context, in installation, key string) {
	t.Helper()
	base, err := url.Parse(in.api.Base())
	testenv.Must(t, err)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+base.Host+"/v1/logs", strings.NewReader(`{"logs":[]}`))
	testenv.Must(t, err)
	r.Header.Set("X-Api-Key", key)
	answer, err := (&http.Client{Timeout: time.Minute}).Do(r)
	testenv.Must(t, err)
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
	testenv.Must(t, post())
	testenv.Must(t, in.api.RevokeAPIKey(ctx, in.operator, to.keyID, "leaked"))
	begun := time.Now()
	testenv.Eventually(t, func() error { return wantProblem(post(), 401, "api_key_revoked") })
	took := time.Since(begun)
	t.Logf("in force %s after the answer", took.Round(time.Millisecond))
	if took > quietLimit {
		t.Errorf("in force %s after the answer, want %s", took, quietLimit)
	}
	testenv.Must(t, in.api.RevokeAPIKey(ctx, in.operator, to.keyID, "again"))
	testenv.Must(t, wantProblem(post(), 401, "api_key_revoked"))
	sum, err := h.check(texts(h.all()))
	testenv.Must(t, err)
	testenv.Eventually(t, func() error { return checkBalance(ctx, in, to, sum) })
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
			testenv.Must(t, wantProblem(err, 429, "quota_exceeded"))
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
	testenv.Must(t, wantProblem(err, 429, "quota_exceeded"))
	verify(t, ctx, in, to, h)
}

// rate: the tier indie admits 60 requests at once and one a second;
// then it refuses with a Retry-After.
func rate(t *testing.T, ctx context.Context, in installation) {
	to := in.tenant(t, ctx, "hasty", "indie")
	post := plainly(body((&maker{mark: "hasty"}).plain().text)).Request(to.key)
	for i := range 120 {
		answer, err := in.api.Call(ctx, post)
		testenv.Must(t, err)
		checkRateHeaders(t, answer)
		if answer.Status == 200 {
			continue
		}
		testenv.Must(t, wantProblem(answer.Problem(), 429, "rate_limited"))
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

// Exhausted stays exhausted: after a replica has refused a request, no
// other replica and no later run accepts a smaller one that would fit.
func TestExhaustedStaysExhausted(t *testing.T) {
	e := newEdge(t, 100_000)
	one, other := e.replica(), e.replica()
	one.awaitAccount(t)
	if got := one.send(t, 60_000); got != "" {
		t.Fatalf("60,000 bytes of 100,000: %s", got)
	}
	if got := one.send(t, 50_000); got != "quota_exceeded" {
		t.Fatalf("50,000 bytes more: %q", got)
	}
	testenv.Eventually(t, func() error {
		if got := other.post(1); got != "quota_exceeded" {
			return fmt.Errorf("another replica answered %q", got)
		}
		return nil
	})
	one.stop()
	other.stop()
	if got := e.replica().post(1); got != "quota_exceeded" {
		t.Errorf("after a restart: %q", got)
	}
	var used, refused int64
	conn, err := pgx.Connect(t.Context(), e.database.Reveal())
	testenv.Must(t, err)
	defer conn.Close(context.Background())
	_, err = conn.Exec(t.Context(), `SELECT set_config('weir.organization', '*', false)`)
	testenv.Must(t, err)
	testenv.Must(t, conn.QueryRow(t.Context(), `SELECT consumed + overage FROM ledger.books`).Scan(&used))
	if used > 95_000 {
		t.Errorf("%d bytes are charged: the quota was used up, not refused", used)
	}
	testenv.Eventually(t, func() error { // both replicas have published their last counts
		err := conn.QueryRow(t.Context(), `SELECT coalesce(sum(requests), 0)::bigint FROM ledger.usage_days WHERE outcome = 'quota_exceeded'`).Scan(&refused)
		if err == nil && refused != 2 {
			err = fmt.Errorf("%d refusals are counted, want one of each replica", refused)
		}
		return err
	})
}

// postTo posts one entry of at least a size, and returns the code of
// the answer's problem; empty without one.
func postTo(t *testing.T, ingest http.Handler, key string, size int) (code string) {
	t.Helper()
	body := `{"logs":[{"timestamp":"2026-11-20T10:00:00Z","level":"info","message":"m","metadata":{"text":"` + strings.Repeat("x", size) + `"}}]}`
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/logs", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Api-Key", key)
	recorder := httptest.NewRecorder()
	ingest.ServeHTTP(recorder, r)
	var problem struct {
		Code string `json:"code"`
	}
	testenv.Must(t, json.Unmarshal(recorder.Body.Bytes(), &problem))
	return problem.Code
}
