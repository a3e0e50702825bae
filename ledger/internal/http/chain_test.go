package http_test

import (
	"context"
	nethttp "net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/integrity"
	"github.com/weirlog/weir/shared/testenv"
)

// Sealed hours are linked to each other, the verification has the last
// link, and it lists violations.
func TestChain(t *testing.T) {
	a := newAPI(t)
	a.Start(t, "acme", ledger.Indie)
	if none := a.must(t, 200, "GET", "verification", ""); none["sound"] != true || none["chain"] != nil || none["sealed_through"] != nil {
		t.Errorf("before: %v", none)
	}
	for range 2 {
		a.Apply(t, a.NewCharge("acme", 10))
		a.Pass(2 * time.Hour)
		testenv.Must(t, integrity.Seal(t.Context(), a.Pool, a.Now()))
	}
	first := a.must(t, 200, "GET", "chain?limit=1", "")
	last := first["items"].([]any)[0].(map[string]any)
	second := a.must(t, 200, "GET", "chain?limit=1&cursor="+first["next_cursor"].(string), "")
	if before := second["items"].([]any)[0].(map[string]any); last["bytes"] != 10.0 || last["charges"] != 1.0 || last["previous"] != before["hash"] || last["hash"] == before["hash"] {
		t.Errorf("%v follows %v", last, before)
	}
	sound := a.must(t, 200, "GET", "verification", "")
	if head, _ := sound["chain"].(map[string]any); sound["sound"] != true || head["hash"] != last["hash"] || sound["sealed_through"] == nil {
		t.Errorf("sealed: %v", sound)
	}
	a.AsOwner(t, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE books SET grant_left = grant_left - 1, consumed = consumed + 1 WHERE organization = 'acme' AND consumed > 0`)
		return err
	})
	spoiled := a.must(t, 200, "GET", "verification", "")
	if found := spoiled["violations"].([]any); spoiled["sound"] != false || len(found) == 0 || found[0].(map[string]any)["detail"] == "" {
		t.Errorf("spoiled: %v", spoiled)
	}
	a.refuses(t, map[string]string{
		"GET chain?from=x ": "?from", "GET chain?from=2026-11-02T00:00:01Z&to=2026-11-02T00:00:00Z ": "?to",
		"GET chain?cursor=x ": "?cursor", "GET verification?deep=1 ": "?deep",
	})
}

const ofAcme = "/v1/organizations/acme/"

// must sends a request below acme, expects a status, and returns the
// body's members.
func (a *api) must(t *testing.T, want int, method, path, body string) map[string]any {
	t.Helper()
	status, answer := a.send(t, method, ofAcme+path, body)
	if status != want {
		t.Fatalf("%s %s %s: %d %v, want %d", method, path, body, status, answer, want)
	}
	return answer
}

// refuses checks that requests below acme, "METHOD path body", are
// refused with a pointer.
func (a *api) refuses(t *testing.T, requests map[string]string) {
	t.Helper()
	for request, pointer := range requests {
		parts := strings.SplitN(request, " ", 3)
		answer := a.must(t, 400, parts[0], parts[1], parts[2])
		if faults, _ := answer["errors"].([]any); len(faults) != 1 || faults[0].(map[string]any)["pointer"] != pointer {
			t.Errorf("%s: %v, want %s", request, answer, pointer)
		}
	}
}

// The description is served beside the routes.
func TestDescription(t *testing.T) {
	if status, described := newAPI(t).get(t, "/v1/ledger/openapi.json"); status != 200 || described["openapi"] == nil {
		t.Errorf("%d %v", status, described)
	}
}

// Each route answers for another's organization as for a missing one.
func TestOthersAreNotThere(t *testing.T) {
	a := newAPI(t)
	a.Start(t, "evil", ledger.Indie)
	walked := 0
	err := chi.Walk(a.routes, func(method, route string, _ nethttp.Handler, _ ...func(nethttp.Handler) nethttp.Handler) error {
		if !strings.Contains(route, "{organization}") {
			return nil
		}
		walked++
		path := strings.NewReplacer("{organization}", "evil", "{grant}", "grt_1", "{statement}", "1").Replace(route)
		body := map[bool]string{true: "{}"}[method == nethttp.MethodPut || method == nethttp.MethodPost]
		if method == nethttp.MethodDelete {
			path += "?key=key"
		}
		if status, answer := a.send(t, method, path, body); status != 404 || !strings.Contains(answer["detail"].(string), "evil") {
			t.Errorf("%s %s: %d %v", method, path, status, answer)
		}
		return nil
	})
	if err != nil || walked < 20 {
		t.Errorf("%d routes, %v", walked, err)
	}
}
