package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/testenv"
)

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
	testenv.Eventually(t, startLimit, func() error {
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
	must(t, err)
	defer conn.Close(context.Background())
	_, err = conn.Exec(t.Context(), `SELECT set_config('weir.organization', '*', false)`)
	must(t, err)
	must(t, conn.QueryRow(t.Context(), `SELECT consumed + overage FROM ledger.books`).Scan(&used))
	if used > 95_000 {
		t.Errorf("%d bytes are charged: the quota was used up, not refused", used)
	}
	testenv.Eventually(t, startLimit, func() error { // both replicas have published their last counts
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
	must(t, json.Unmarshal(recorder.Body.Bytes(), &problem))
	return problem.Code
}
