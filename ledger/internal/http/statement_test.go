package http_test

import (
	"maps"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/ledger"
)

// Statements are listed with totals; a single one has everything, also
// as CSV and as a page.
func TestStatements(t *testing.T) {
	a := newAPI(t)
	a.Start(t, "acme", ledger.Indie)
	a.Book(t, a.NewCharge("acme", 30))
	a.SetClock(time.Date(2026, 12, 1, 0, 1, 0, 0, time.UTC))
	if _, err := a.Plans.Advance(t.Context(), a.Pool, a.Now()); err != nil {
		t.Fatal(err)
	}
	status, page := a.get(t, "/v1/organizations/acme/statements?limit=1")
	items, _ := page["items"].([]any)
	if status != 200 || len(items) != 1 || page["next_cursor"] == nil {
		t.Fatalf("%d %v", status, page)
	}
	latest := items[0].(map[string]any)
	if latest["number"] != 3.0 || latest["consumed"] != 30.0 || latest["expired"] != 70.0 || latest["charges"] != nil {
		t.Errorf("%v", latest)
	}
	if _, next := a.get(t, "/v1/organizations/acme/statements?cursor="+page["next_cursor"].(string)); len(next["items"].([]any)) != 2 || next["next_cursor"] != nil {
		t.Errorf("the next page %v", next)
	}
	status, statement := a.get(t, "/v1/organizations/acme/statements/3")
	charges, _ := statement["charges"].([]any)
	if status != 200 || len(charges) != 1 || charges[0].(map[string]any)["day"] != "2026-11-20" || charges[0].(map[string]any)["bytes"] != 30.0 {
		t.Errorf("%d %v", status, statement)
	}
	if projects, _ := statement["by_project"].([]any); statement["id"] != "3" || len(projects) != 1 ||
		!maps.Equal(projects[0].(map[string]any), map[string]any{"project": "project", "requests": 1.0, "entries": 1.0, "bytes": 30.0}) {
		t.Errorf("statement %v, by project %v", statement["id"], statement["by_project"])
	}
	answer := a.statementAs(t, "text/csv")
	if body := answer.Body.String(); answer.Header().Get("Content-Type") != "text/csv" || !strings.HasPrefix(body, "statement,line,day,") ||
		!strings.Contains(body, "\n3,charge,2026-11-20,project,,,,1,1,30\n") {
		t.Errorf("%v\n%s", answer.Header(), body)
	}
	answer = a.statementAs(t, "text/html")
	if body := answer.Body.String(); answer.Header().Get("Content-Type") != "text/html; charset=utf-8" || !strings.Contains(body, "<h1>Statement 3</h1>") ||
		strings.Contains(body, "/console/usage") || answer.Header().Get("Content-Security-Policy") == "" {
		t.Errorf("%v\n%s", answer.Header(), body)
	}
	for path, want := range map[string]int{"acme/statements/4": 404, "acme/statements/last": 404, "evil/statements/1": 404, "acme/statements?cursor=x": 400, "acme/statements/3?by=day": 400} {
		if status, body := a.get(t, "/v1/organizations/"+path); status != want {
			t.Errorf("%s: %d %v, want %d", path, status, body, want)
		}
	}
}

// statementAs gets acme's third statement as a media type.
func (a *api) statementAs(t *testing.T, kind string) *httptest.ResponseRecorder {
	t.Helper()
	request := httptest.NewRequest("GET", "/v1/organizations/acme/statements/3", nil)
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Accept", kind)
	answer := httptest.NewRecorder()
	a.handler.ServeHTTP(answer, request)
	return answer
}
