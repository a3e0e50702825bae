package http_test

import (
	"fmt"
	"testing"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
)

// Budgets are set together, listed with their use, and removed one by one.
func TestBudgets(t *testing.T) {
	a := newAPI(t)
	a.Start(t, "acme", ledger.Scale)
	a.Start(t, "evil", ledger.Scale)
	a.Book(t, a.NewCharge("acme", 30))
	const path = "/v1/organizations/acme/budgets"
	shown := func(method, query, body string) (shown string) {
		t.Helper()
		status, page := a.send(t, method, path+query, body)
		if status != 200 || page["next_cursor"] != nil {
			t.Fatalf("%s %s: %d %v", method, query, status, page)
		}
		for _, item := range page["items"].([]any) {
			b := item.(map[string]any)
			shown += fmt.Sprint(b["project"], " ", b["key"], " ", b["used"], " of ", b["bytes"], ", ", b["remaining"], " left, ", b["state"], " to ", b["resets_at"], "; ")
		}
		return shown
	}
	if got := shown("GET", "", ""); got != "" {
		t.Errorf("before: %s", got)
	}
	const ofProject, ofKey = "project <nil> 30 of 100, 70 left, active to 2026-12-01T00:00:00Z; ", "<nil> key 30 of 20, 0 left, exhausted to 2026-12-01T00:00:00Z; "
	if got := shown("PUT", "", `[{"key":"key","bytes":20},{"project":"project","bytes":100}]`); got != ofProject+ofKey {
		t.Errorf("set: %s", got)
	}
	if got := shown("GET", "", ""); got != ofProject+ofKey {
		t.Errorf("listed: %s", got)
	}
	for range 2 {
		if got := shown("DELETE", "?key=key", ""); got != ofProject {
			t.Errorf("removed: %s", got)
		}
	}
	gone := ledger.BudgetSpec{Spender: ledger.Spender{Project: "deleted-since"}, Bytes: 1}
	owns := a.Budgets.Owns
	a.Budgets.Owns = func(string, string) bool { return true } // before it was deleted
	if _, err := a.Budgets.Set(t.Context(), "acme", unitofwork.Request{ID: "gone"}, gone); err != nil {
		t.Fatal(err)
	}
	a.Budgets.Owns = owns
	if got := shown("DELETE", "?project=deleted-since", ""); got != ofProject {
		t.Errorf("removed that of a deleted project: %s", got)
	}
	if got := shown("PUT", "", `[]`); got != "" {
		t.Errorf("none: %s", got)
	}
	for _, c := range []struct {
		method, path, body string
		want               int
	}{
		{"PUT", path, `[{"project":"project","key":"k","bytes":1}]`, 400}, {"PUT", path, `[{"bytes":1}]`, 400}, {"PUT", path, `[{"project":"project"}]`, 400},
		{"PUT", path, `[{"key":"\u0000","bytes":1}]`, 400},
		{"PUT", path, `[{"project":"project","bytes":1},{"project":"project","bytes":2}]`, 400}, {"PUT", path, `{}`, 400}, {"PUT", path, `null`, 400}, {"DELETE", path, "", 400},
		{"DELETE", path + "?project=project&key=k", "", 400}, {"DELETE", path + "?name=p", "", 400}, {"GET", path + "?project=p", "", 400},
		{"PUT", path, `[{"project":"foreign","bytes":1}]`, 404}, {"PUT", path, `[{"project":"unknown","bytes":1}]`, 404},
		{"DELETE", path + "?project=foreign", "", 404}, {"DELETE", path + "?project=unknown", "", 404},
		{"GET", "/v1/organizations/evil/budgets", "", 404}, {"PUT", "/v1/organizations/evil/budgets", `[]`, 404},
		{"DELETE", "/v1/organizations/nobody/budgets?key=k", "", 404},
	} {
		if status, answer := a.send(t, c.method, c.path, c.body); status != c.want {
			t.Errorf("%s %s %s: %d %v, want %d", c.method, c.path, c.body, status, answer, c.want)
		}
	}
}
