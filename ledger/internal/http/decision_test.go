package http_test

import (
	nethttp "net/http"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/ledger"
)

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
