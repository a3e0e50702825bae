package app_test

import (
	"encoding/csv"
	"fmt"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const auditPage = "/console/settings/audit"

// auditOf reads the audit of an organization, as the operator.
func (p *process) auditOf(t *testing.T, organization, more string) []map[string]any {
	t.Helper()
	return p.must(t, 200, "GET", "/v1/audit-events?limit=1000&organization="+organization+more, "").items(t)
}

// Every decision is in the audit: what changed, by whom, in which
// role, from where and in which request, with the names of that time.
func TestAuditHasWhoAndWhat(t *testing.T) {
	p := newWorld(t).start(t, operatorToken)
	acme := p.tenant(t, "Acme")
	b := p.signedIn(t, acme, "owner")
	b.post(t, apiKeysPage+"/"+acme.key+"/revoke", map[string]string{"reason": "leaked"}, header{"User-Agent", "Test/1.0\x1b"})
	b.post(t, "/console/sign-out", nil)
	lines := p.auditOf(t, acme.organization, "")
	var actions []string
	for i, line := range lines {
		actions = append(actions, line["action"].(string))
		if got := line["sequence"].(float64); int(got) != len(lines)-i {
			t.Errorf("line %d has the number %v", i, got)
		}
	}
	want := []string{"session.ended", "api_key.revoked", "session.started", "member.added", "service_token.issued", "api_key.issued",
		"project.created", "organization.created"}
	if !slices.Equal(actions, want) {
		t.Fatalf("the audit tells of %q, want %q", actions, want)
	}
	revoked := lines[1]
	actor, target := revoked["actor"].(map[string]any), revoked["target"].(map[string]any)
	if actor["kind"] != "member" || actor["role"] != "owner" || !strings.HasPrefix(actor["name"].(string), "Ada (owner@") || actor["id"] != lines[3]["target"].(map[string]any)["id"] {
		t.Errorf("the actor is %v", actor)
	}
	if revoked["address"] != "192.0.2.7" || revoked["client"] != "Test/1.0" || revoked["request_id"] == nil {
		t.Errorf("it came from %v, %v, %v", revoked["address"], revoked["client"], revoked["request_id"])
	}
	before, after := revoked["before"].(map[string]any), revoked["after"].(map[string]any)
	if target["id"] != acme.key || target["name"] != "live" || before["state"] != "active" || after["state"] != "revoked" || after["reason"] != "leaked" {
		t.Errorf("it tells of %v: %v -> %v", target, before, after)
	}
	operator := lines[7]["actor"].(map[string]any)
	if operator["kind"] != "service_token" || operator["name"] != "Operator (from the configuration)" || lines[7]["before"] != nil {
		t.Errorf("the organization was created by %v: %v", operator, lines[7])
	}
	if started := lines[2]; started["actor"].(map[string]any)["id"] != actor["id"] || started["address"] != "192.0.2.7" {
		t.Errorf("the session was started by %v", started)
	}
	installation := p.auditOf(t, "*", "")
	if len(installation) != 1 || installation[0]["actor"].(map[string]any)["kind"] != "configuration" {
		t.Errorf("the audit of the installation is %v", installation)
	}
}

// Filters work together and alone, and pages
// continue where the previous one ended.
func testAuditIsFiltered(t *testing.T, p *process) {
	acme, other := p.tenant(t, "Acme"), p.tenant(t, "Other")
	p.must(t, 200, "POST", "/v1/api-keys/"+acme.key+"/revoke", "")
	all := p.auditOf(t, acme.organization, "")
	operator := all[0]["actor"].(map[string]any)["id"].(string)
	second := all[len(all)-2]["at"].(string)
	for filter, want := range map[string]int{
		"": 5, "&actor=" + operator: 5, "&actor=mem_x": 0, "&action=api_key.revoked": 1, "&action=api_key.rotted": 0,
		"&target=" + acme.key: 2, "&target=" + other.key: 0, "&from=2001-01-01T00:00:00Z": 5, "&to=2001-01-01T00:00:00Z": 0,
		"&from=" + second: 4, "&to=" + second: 1, "&target=" + acme.key + "&action=api_key.issued&actor=" + operator: 1,
	} {
		if got := p.auditOf(t, acme.organization, filter); len(got) != want {
			t.Errorf("%q finds %d lines, want %d", filter, len(got), want)
		}
	}
	var seen []any
	path := "/v1/audit-events?limit=2&organization=" + acme.organization
	for next := ""; ; {
		page := p.must(t, 200, "GET", path+next, "")
		for _, line := range page.items(t) {
			seen = append(seen, line["sequence"])
		}
		if page.body["next_cursor"] == nil {
			break
		}
		next = "&cursor=" + page.get("next_cursor")
	}
	if fmt.Sprint(seen) != "[5 4 3 2 1]" {
		t.Errorf("the pages show %v", seen)
	}
	for _, query := range []string{"actor=a%00b", "target=%2F", "action=API", "from=today", "to=2026-01-01", "format=xml", "cursor=x", "limit=0",
		"from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", "who=me", "actor=a&actor=b", "format=csv&limit=5"} {
		if got := p.call(t, operatorToken, "GET", "/v1/audit-events?organization="+acme.organization+"&"+query, ""); got.status != 400 || len(pointersOf(got)) != 1 {
			t.Errorf("%s: got %d %s", query, got.status, got.text)
		}
	}
}

// A token that may only read the audit reads
// that of its organization, and nothing else.
func testAuditorsToken(t *testing.T, p *process) {
	acme := p.tenant(t, "Acme")
	token := p.must(t, 201, "POST", "/v1/service-tokens",
		text(map[string]any{"organization": acme.organization, "name": "SIEM", "scopes": []string{"audit:read"}})).get("token")
	if got := p.call(t, token, "GET", "/v1/audit-events", ""); got.status != 200 || len(got.items(t)) != 5 {
		t.Errorf("the audit: got %d %s", got.status, got.text)
	}
	if got := p.call(t, token, "GET", "/v1/projects", ""); got.status != 403 {
		t.Errorf("the projects: got %d %s", got.status, got.text)
	}
}

// All that matches is served as CSV, by the
// parameter or by Accept, and no field is a formula.
func testAuditAsCSV(t *testing.T, p *process) {
	acme := p.tenant(t, "Acme")
	p.must(t, 201, "POST", "/v1/projects", text(map[string]any{"organization": acme.organization, "name": `=HYPERLINK("https://evil.example")`}))
	for _, how := range []struct{ query, accept string }{{"&format=csv", ""}, {"", "text/csv"}, {"", "text/html;q=0.1, text/csv; charset=utf-8"}} {
		rows := p.csv(t, "/v1/audit-events?organization="+acme.organization+"&action=project.created"+how.query, how.accept)
		if len(rows) != 3 {
			t.Fatalf("%+v: %d rows", how, len(rows))
		}
		if got := rows[1][slices.Index(rows[0], "target_name")]; got != `'=HYPERLINK("https://evil.example")` {
			t.Errorf("%+v: the newest project is called %q", how, got)
		}
	}
}

func (p *process) csv(t *testing.T, path, accept string) [][]string {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), "GET", path, nil)
	request.Header.Set("Authorization", "Bearer "+operatorToken)
	if accept != "" {
		request.Header.Set("Accept", accept)
	}
	recorder := httptest.NewRecorder()
	p.checked.ServeHTTP(recorder, request)
	if kind := recorder.Header().Get("Content-Type"); recorder.Code != 200 || !strings.HasPrefix(kind, "text/csv") {
		t.Fatalf("GET %s: %d %s %s", path, recorder.Code, kind, recorder.Body)
	}
	rows, err := csv.NewReader(recorder.Body).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// Members whose role may read the audit read it as
// text, filter it without scripts, and download it.
func testAuditPage(t *testing.T, p *process) {
	acme, other := p.tenant(t, "Acme"), p.tenant(t, "Other")
	p.must(t, 201, "POST", "/v1/projects", text(map[string]any{"organization": acme.organization, "name": `<script>alert(1)</script>`}))
	b := p.signedIn(t, acme, "owner")
	b.post(t, apiKeysPage+"/"+acme.key+"/revoke", map[string]string{"reason": "leaked"}, header{"User-Agent", "Test/1.0"})
	got := b.get(t, auditPage)
	for _, want := range []string{"API key revoked: <bdi>live</bdi>", "state: <bdi>active</bdi>", "<bdi>revoked</bdi>", "reason: <bdi>leaked</bdi>",
		"Test/1.0", p.address, "Ada (owner@", "Operator (from the configuration)", "&lt;script&gt;", `href="/console/settings/audit.csv"`} {
		if !strings.Contains(got.body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if got.status != 200 || strings.Contains(got.body, other.project) || strings.Contains(got.body, "<script>alert") {
		t.Errorf("the page: %d %s", got.status, got.body)
	}
	for query, want := range map[string]int{
		"": 8, "?action=api_key.revoked": 1, "?target=" + acme.key: 2, "?target=" + other.key: 0, "?from=2001-01-01&to=2001-01-01": 0,
		"?from=2001-01-01": 8, "?actor=mem_x": 0,
	} {
		page := b.get(t, auditPage+query)
		if n := strings.Count(page.body, "<details>"); page.status != 200 || n != want {
			t.Errorf("%q shows %d lines (%d), want %d", query, n, page.status, want)
		}
		rows, err := csv.NewReader(strings.NewReader(b.get(t, auditPage+".csv"+query).body)).ReadAll()
		if err != nil || len(rows) != want+1 {
			t.Errorf("%q: the file has %d rows, %v, want %d", query, len(rows), err, want+1)
		}
	}
}

// An invalid filter is reported beside its field,
// and nothing is shown instead of too much.
func testAuditPageRefuses(t *testing.T, p *process) {
	acme := p.tenant(t, "Acme")
	b := p.signedIn(t, acme, "admin")
	for _, query := range []string{"?from=yesterday", "?to=2026-02-30", "?from=2026-01-02&to=2026-01-01", "?target=a%00b", "?action=x", "?actor=%2F"} {
		page := b.get(t, auditPage+query)
		if page.status != 422 || strings.Contains(page.body, "<details>") || !strings.Contains(page.body, `aria-invalid="true"`) {
			t.Errorf("%s: %d %s", query, page.status, page.body)
		}
		if file := b.get(t, auditPage+".csv"+query); file.status != 400 {
			t.Errorf("%s as a file: %d", query, file.status)
		}
	}
	if page := b.get(t, auditPage+"?cursor=x"); page.status != 400 {
		t.Errorf("a cursor of nothing: %d", page.status)
	}
	for _, role := range []string{"developer", "viewer", "billing"} {
		unable := p.signedIn(t, acme, role)
		for _, path := range []string{auditPage, auditPage + ".csv"} {
			if page := unable.get(t, path); page.status != 403 || strings.Contains(page.body, acme.key) {
				t.Errorf("%s as %s: %d", path, role, page.status)
			}
		}
	}
}

// A long audit continues page by page, with the filters.
func testAuditPages(t *testing.T, p *process) {
	acme := p.tenant(t, "Acme")
	for range 60 {
		p.must(t, 201, "POST", "/v1/projects", text(map[string]any{"organization": acme.organization, "name": "P"}))
	}
	b := p.signedIn(t, acme, "owner")
	first := b.get(t, auditPage+"?action=project.created")
	next := regexp.MustCompile(`href="([^"]*)" rel="next"`).FindStringSubmatch(first.text())
	if next == nil || strings.Count(first.body, "<details>") != 50 {
		t.Fatalf("the first page: %d lines, next %q", strings.Count(first.body, "<details>"), next)
	}
	if second := b.get(t, next[1]); strings.Count(second.body, "<details>") != 11 || strings.Contains(second.body, `rel="next"`) {
		t.Errorf("the second page has %d lines", strings.Count(second.body, "<details>"))
	}
}
