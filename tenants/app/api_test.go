package app_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/testenv"
)

// Every answer has the members that clients may rely on, with values of
// the documented form. A secret is in the answer to its creation only.
func testShapes(t *testing.T, p *process) {
	id := regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

	organization := p.must(t, 201, "POST", "/v1/organizations", `{"name":" Acme ","tier":"scale"}`)
	expect(t, organization, map[string]any{"id": id, "name": "Acme", "tier": "scale", "created_at": utc})

	project := p.must(t, 201, "POST", "/v1/projects", text(map[string]any{"organization": organization.get("id"), "name": "Shop"}))
	expect(t, project, map[string]any{"id": id, "organization": organization.get("id"), "name": "Shop", "created_at": utc})

	key := p.must(t, 201, "POST", "/v1/api-keys",
		text(map[string]any{"project": project.get("id"), "environment": "staging", "name": "live", "expires_at": "2099-01-01T02:00:00+02:00"}))
	secret := key.get("key")
	shown := map[string]any{
		"id": id, "prefix": secret[:len("weir_")+4], "last4": secret[len(secret)-4:], "project": project.get("id"),
		"organization": organization.get("id"), "environment": "staging", "access": "full", "name": "live", "created_at": utc,
		"expires_at": "2099-01-01T00:00:00Z", "state": "active", "revoked_at": nil, "revoked_reason": nil,
		"rate_per_minute": nil, "created_by": regexp.MustCompile("^tok_operator_"), "replaces": nil, "rotated_to": nil, "rotated_at": nil,
		"lenient": false, "origins": []any{}, "exposures": []any{}, "usage": map[string]any{
			"accepted": 0, "rejected": 0, "refused": 0, "read": 0, "since_rotation": nil, "first_event_at": nil, "last_used_at": nil,
			"last_used_from_address": "", "last_used_by_client": "",
		},
	}
	expect(t, key, with(shown, "key", regexp.MustCompile(`^weir_[0-9a-f]{48}$`)))

	listed := p.must(t, 200, "GET", "/v1/api-keys?project="+project.get("id"), "")
	expectOne(t, listed, shown)

	expect(t, p.must(t, 200, "GET", "/v1/api-keys/"+key.get("id"), ""), with(shown, "recent_users", []any{}))

	revoked := p.must(t, 200, "POST", "/v1/api-keys/"+key.get("id")+"/revoke", `{"reason":"leaked"}`)
	shown = with(with(with(shown, "state", "revoked"), "revoked_at", utc), "revoked_reason", "leaked")
	expect(t, revoked, shown)
	again := p.must(t, 200, "POST", "/v1/api-keys/"+key.get("id")+"/revoke", `{"reason":"other"}`)
	if again.text != revoked.text {
		t.Errorf("revoking again changed %s\ninto %s", revoked.text, again.text)
	}

	token := p.must(t, 201, "POST", "/v1/service-tokens",
		text(map[string]any{"organization": organization.get("id"), "name": "Billing", "scopes": []string{"billing:read"}}))
	secret = token.get("token")
	shown = map[string]any{
		"id": id, "prefix": secret[:len("weirsvc_")+4], "last4": secret[len(secret)-4:], "organization": organization.get("id"),
		"name": "Billing", "scopes": []any{"billing:read"}, "created_at": utc, "state": "active", "revoked_at": nil, "revoked_reason": nil,
	}
	expect(t, token, with(shown, "token", regexp.MustCompile(`^weirsvc_[0-9a-f]{48}$`)))
	expectOne(t, p.must(t, 200, "GET", "/v1/service-tokens?organization="+organization.get("id"), ""), shown)
	expect(t, p.must(t, 200, "POST", "/v1/service-tokens/"+token.get("id")+"/revoke", ""),
		with(with(with(shown, "state", "revoked"), "revoked_at", utc), "revoked_reason", ""))

	admin := p.must(t, 201, "POST", "/v1/service-tokens",
		text(map[string]any{"organization": organization.get("id"), "name": "Admin", "scopes": []string{"tenants:admin"}})).get("token")
	expectOne(t, p.call(t, admin, "GET", "/v1/organizations", ""), map[string]any{"id": id, "name": "Acme", "tier": "scale", "created_at": utc})
	expectOne(t, p.must(t, 200, "GET", "/v1/projects?organization="+organization.get("id"), ""),
		map[string]any{"id": project.get("id"), "organization": organization.get("id"), "name": "Shop", "created_at": utc})
}

var utc = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$`)

func with(members map[string]any, name string, value any) map[string]any {
	more := map[string]any{name: value}
	for n, v := range members {
		if n != name {
			more[n] = v
		}
	}
	return more
}

func expect(t *testing.T, got answer, want map[string]any) {
	t.Helper()
	expectMembers(t, got.body, want)
}

func expectOne(t *testing.T, list answer, want map[string]any) {
	t.Helper()
	items := list.items(t)
	if next, given := list.body["next_cursor"]; len(items) != 1 || next != nil || !given {
		t.Errorf("got %s, want one item and next_cursor null", list.text)
		return
	}
	expectMembers(t, items[0], want)
}

// expectMembers checks that got has exactly the
// members of want; a pattern matches a text.
func expectMembers(t *testing.T, got, want map[string]any) {
	t.Helper()
	for name, value := range want {
		given, found := got[name]
		if pattern, ok := value.(*regexp.Regexp); ok {
			if word, _ := given.(string); !pattern.MatchString(word) {
				t.Errorf("%s is %v, want %s", name, given, pattern)
			}
		} else if !found || text(given) != text(value) {
			t.Errorf("%s is %v, want %v", name, given, value)
		}
	}
	for name := range got {
		if _, wanted := want[name]; !wanted {
			t.Errorf("%s is there and should not be", name)
		}
	}
}

// An invalid value is named, with a remedy, and nothing is created.
func testRefusals(t *testing.T, p *process) {
	acme := p.tenant(t, "Acme")
	long := strings.Repeat("x", 201)
	for name, test := range map[string]struct {
		path, body string
		pointers   []string
	}{
		"an organization without anything": {"/v1/organizations", `{}`, []string{"/name", "/tier"}},
		"a tier that is not":               {"/v1/organizations", `{"name":"A","tier":"Indie"}`, []string{"/tier"}},
		"a name too long":                  {"/v1/organizations", text(map[string]any{"name": long, "tier": "indie"}), []string{"/name"}},
		"a name with NUL":                  {"/v1/organizations", `{"name":"a\u0000b","tier":"indie"}`, []string{"/name"}},
		"a name that is a number":          {"/v1/organizations", `{"name":7,"tier":"indie"}`, []string{"/name"}},
		"a project without anything":       {"/v1/projects", `{}`, []string{"/organization", "/name"}},
		"a key without anything":           {"/v1/api-keys", `{}`, []string{"/project", "/name", "/environment"}},
		"a key that has expired":           {"/v1/api-keys", text(map[string]any{"project": acme.project, "environment": "dev", "name": "n", "expires_at": "2001-01-01T00:00:00Z"}), []string{"/expires_at"}},
		"an end behind the year 9999":      {"/v1/api-keys", text(map[string]any{"project": acme.project, "environment": "dev", "name": "n", "expires_at": "9999-12-31T23:59:59-23:00"}), []string{"/expires_at"}},
		"an end that is no time":           {"/v1/api-keys", text(map[string]any{"project": acme.project, "environment": "dev", "name": "n", "expires_at": "tomorrow"}), []string{"/expires_at"}},
		"a token without anything":         {"/v1/service-tokens", `{}`, []string{"/organization", "/name", "/scopes"}},
		"a scope that is none":             {"/v1/service-tokens", text(map[string]any{"organization": acme.organization, "name": "n", "scopes": []string{"all"}}), []string{"/scopes/0"}},
		"a reason with an escape":          {"/v1/api-keys/" + acme.key + "/revoke", `{"reason":"a\u001bb"}`, []string{"/reason"}},
		"an unknown member":                {"/v1/projects", `{"organisation":"x"}`, []string{"/organisation"}},
		"no JSON":                          {"/v1/projects", `{"organization":`, []string{""}},
	} {
		got := p.call(t, operatorToken, "POST", test.path, test.body)
		if got.status != 400 || got.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: got %d %s", name, got.status, got.text)
			continue
		}
		if pointers := pointersOf(got); !slices.Equal(pointers, test.pointers) {
			t.Errorf("%s: pointers %q, want %q (%s)", name, pointers, test.pointers, got.text)
		}
		for _, member := range []string{"type", "title", "status", "detail", "code", "message", "request_id"} {
			if got.body[member] == nil || got.body[member] == "" {
				t.Errorf("%s: %s is missing in %s", name, member, got.text)
			}
		}
	}
	if keys := p.must(t, 200, "GET", "/v1/api-keys?project="+acme.project, "").items(t); len(keys) != 1 || keys[0]["state"] != "active" {
		t.Errorf("refused requests left traces: %v", keys)
	}
	for _, path := range []string{"/v1/api-keys", "/v1/projects", "/v1/organizations?limit=0", "/v1/organizations?limit=1001",
		"/v1/organizations?organisation=x", "/v1/organizations?limit=1&limit=2", "/v1/organizations?cursor=x", "/v1/organizations?cursor=eyJhdCI6IjIwMjYtMDEtMDFUMDA6MDA6MDBaIiwiaWQiOiJcdTAwMDAifQ"} {
		if got := p.call(t, operatorToken, "GET", path, ""); got.status != 400 || len(pointersOf(got)) != 1 {
			t.Errorf("GET %s: got %d %s", path, got.status, got.text)
		}
	}
}

func pointersOf(got answer) (pointers []string) {
	faults, _ := got.body["errors"].([]any)
	for _, fault := range faults {
		members, _ := fault.(map[string]any)
		pointer, _ := members["pointer"].(string)
		if members["fix"] == "" || members["detail"] == "" {
			pointer = "no way out: " + pointer
		}
		pointers = append(pointers, pointer)
	}
	return pointers
}

// Following next_cursor shows everything once,
// from old to new, even while more is added.
func testPages(t *testing.T, p *process) {
	acme := p.tenant(t, "Acme")
	var want []string
	for i := range 6 {
		want = append(want, p.must(t, 201, "POST", "/v1/projects",
			text(map[string]any{"organization": acme.organization, "name": strings.Repeat("p", i+1)})).get("id"))
	}
	want = append([]string{acme.project}, want...)
	var got []string
	for path := "/v1/projects?limit=3&organization=" + acme.organization; ; {
		page := p.must(t, 200, "GET", path, "")
		for _, item := range page.items(t) {
			got = append(got, item["id"].(string))
		}
		next, more := page.body["next_cursor"].(string)
		if !more {
			break
		}
		path = "/v1/projects?limit=3&organization=" + acme.organization + "&cursor=" + next
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// newWebhook has an endpoint that nobody has.
var newWebhook = map[string]any{"url": "https://hooks.invalid/weir", "events": []string{"quota.exhausted"}}

// A request with a repeated Idempotency-Key creates
// nothing more; with another body it is refused.
func testIdempotencyKey(t *testing.T, p *process) {
	acme := p.tenant(t, "Acme")
	same := header{"Idempotency-Key", "one"}
	for path, bodies := range map[string][2]map[string]any{
		"/v1/organizations": {{"name": "B", "tier": "indie"}, {"name": "C", "tier": "indie"}},
		"/v1/projects":      {{"organization": acme.organization, "name": "B"}, {"organization": acme.organization, "name": "C"}},
	} {
		first := p.must(t, 201, "POST", path, text(bodies[0]), same)
		if again := p.must(t, 201, "POST", path, text(bodies[0]), same); again.text != first.text {
			t.Errorf("POST %s again: got %s, want %s", path, again.text, first.text)
		}
		if other := p.call(t, operatorToken, "POST", path, text(bodies[1]), same); other.status != 400 || other.get("code") != "idempotency_key_reused" {
			t.Errorf("POST %s with another body: got %d %s", path, other.status, other.text)
		}
	}
	key := text(map[string]any{"project": acme.project, "environment": "dev", "name": "B"})
	p.must(t, 201, "POST", "/v1/api-keys", key, same)
	if again := p.call(t, operatorToken, "POST", "/v1/api-keys", key, same); again.status != 409 || again.get("code") != "secret_shown_once" || again.get("key") != "" {
		t.Errorf("POST /v1/api-keys again: got %d %s", again.status, again.text)
	}
	if keys := p.must(t, 200, "GET", "/v1/api-keys?project="+acme.project, "").items(t); len(keys) != 2 {
		t.Errorf("there are %d keys, want the first and one more", len(keys))
	}
	webhooks := "/v1/organizations/" + acme.organization + "/webhooks"
	webhook := webhooks + "/" + p.must(t, 201, "POST", webhooks, text(newWebhook)).get("id")
	deleted := p.must(t, 200, "DELETE", webhook, "", same)
	if again := p.must(t, 200, "DELETE", webhook, "", same); again.text != deleted.text {
		t.Errorf("DELETE of a webhook again: got %s, want %s", again.text, deleted.text)
	}
	for _, bad := range []string{"", "a\x7f", "ä", strings.Repeat("k", 256)} {
		if got := p.call(t, operatorToken, "POST", "/v1/projects", key, header{"Idempotency-Key", bad}); got.status != 400 || got.get("code") != "invalid_idempotency_key" {
			t.Errorf("Idempotency-Key %q: got %d %s", bad, got.status, got.text)
		}
	}
}

// The description has every route that needs a credential, and no other.
func testOpenAPIMatchesRoutes(t *testing.T, p *process) {
	got := p.call(t, "", "GET", "/v1/openapi.json", "")
	paths, _ := got.body["paths"].(map[string]any)
	described := map[string]bool{}
	for path, operations := range paths {
		for method := range operations.(map[string]any) {
			described[strings.ToUpper(method)+" "+path] = true
		}
	}
	if got.status != 200 || got.body["openapi"] != "3.1.0" || len(described) == 0 {
		t.Fatalf("got %d with %d operations", got.status, len(described))
	}
	walk(t, p, func(route string) {
		if !open()[route] && !described[route] {
			t.Errorf("%s is not described", route)
		}
		delete(described, route)
	})
	for route := range described {
		t.Errorf("%s is described and not there", route)
	}
}

// open are the routes that need no credential.
func open() map[string]bool {
	return map[string]bool{
		"GET /healthz": true, "GET /readyz": true, "GET /v1/openapi.json": true, "GET /v1/tenants/openapi.json": true,
		"POST /v1/leak-reports": true, // it is signed
	}
}

func walk(t *testing.T, p *process, visit func(route string)) {
	t.Helper()
	routes, ok := p.Handler().(chi.Routes)
	if !ok {
		t.Fatalf("the handler %T has no routes to walk", p.Handler())
	}
	err := chi.Walk(routes, func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if !strings.HasPrefix(route, "/console") { // pages are walked by tests of their own
			visit(method + " " + route)
		}
		return nil
	})
	testenv.Must(t, err)
}

// A forged Host is in no link of a page or redirect: a
// link with a code would send the code to the other host.
func testForgedHostsMakeNoLinks(t *testing.T, p *process) {
	acme := p.tenant(t, "Acme")
	owner := p.signedIn(t, acme, "owner")
	for page, form := range map[string]url.Values{
		apiKeysPage:                  {"name": {"pods"}, "project": {acme.project}, "environment": {"prod"}, "ends": {"never"}, "form": {"f1"}},
		membersPage + "/invitations": {"email": {"bob@example.com"}, "role": {"developer"}, "form": {"f2"}},
		projectsPage:                 {"name": {"Checkout"}, "form": {"f3"}},
	} {
		request := httptest.NewRequestWithContext(t.Context(), "POST", "https://evil.example"+page, strings.NewReader(form.Encode()))
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.Header.Set("Sec-Fetch-Site", "same-origin")
		request.Header.Set("X-Forwarded-Host", "evil.example")
		got := owner.send(t, request)
		if strings.Contains(got.text(), "evil.example") || strings.Contains(got.header.Get("Location"), "evil.example") {
			t.Errorf("%s leads to another host: %d %v %s", page, got.status, got.header, got.body)
		}
		if got.status == 201 && !strings.Contains(got.text(), "https://weir.example/") {
			t.Errorf("%s shows no link of the configured origin: %s", page, got.body)
		}
	}
}

const (
	projectsPage = "/console/settings/projects"
	apiKeysPage  = "/console/settings/api-keys"
	membersPage  = "/console/settings/members"
)

// No name can break out of its place on a page.
func testNamesStayNames(t *testing.T, p *process) {
	const hostile = `"><script>alert(1)</script><img src=x onerror=alert(1)>'{{.}}`
	organization := p.must(t, 201, "POST", "/v1/organizations", text(map[string]any{"name": hostile, "tier": "indie"})).get("id")
	project := p.must(t, 201, "POST", "/v1/projects", text(map[string]any{"organization": organization, "name": hostile})).get("id")
	key := p.must(t, 201, "POST", "/v1/api-keys", text(map[string]any{"project": project, "environment": "dev", "name": hostile})).get("id")
	p.must(t, 200, "POST", "/v1/api-keys/"+key+"/revoke", text(map[string]any{"reason": hostile}))
	live := p.must(t, 201, "POST", "/v1/api-keys", text(map[string]any{"project": project, "environment": "dev", "name": hostile})).get("id")
	evil := member(organization, "'x@example.com", "owner")
	evil["name"] = hostile
	p.must(t, 201, "POST", "/v1/members", text(evil))
	b := p.browser("192.0.2.3")
	b.signIn(t, "'x@example.com", password)
	p.must(t, 201, "POST", "/v1/service-tokens", text(map[string]any{"organization": organization, "name": hostile, "scopes": []string{"billing:read"}}))
	other := member(organization, "y@example.com", "viewer")
	other["name"] = hostile
	viewer := p.must(t, 201, "POST", "/v1/members", text(other)).get("id")
	anybody := p.browser("192.0.2.5")
	registration := map[string]string{"code": hostile, "organization": hostile, "name": hostile, "email": hostile, "password": password}
	for name, got := range map[string]page{
		"projects":        b.get(t, projectsPage),
		"project":         b.get(t, projectsPage+"/"+project),
		"organization":    b.get(t, "/console/settings/organization"),
		"members":         b.get(t, membersPage),
		"member":          b.get(t, membersPage+"/"+viewer),
		"remove a member": b.get(t, membersPage+"/"+viewer+"/remove"),
		"reset a member":  b.get(t, membersPage+"/"+viewer+"/reset"),
		"keys":            b.get(t, apiKeysPage),
		"new key":         b.get(t, apiKeysPage+"/new"),
		"key":             b.get(t, apiKeysPage+"/"+key),
		"rename a key":    b.get(t, apiKeysPage+"/"+live+"/edit"),
		"rotate a key":    b.get(t, apiKeysPage+"/"+live+"/rotate"),
		"revoke a key":    b.get(t, apiKeysPage+"/"+live+"/revoke"),
		"revoke it again": b.get(t, apiKeysPage+"/"+key+"/revoke"),
		"service tokens":  b.get(t, "/console/settings/service-tokens"),
		"audit log":       b.get(t, "/console/settings/audit"),
		"audit filter":    b.get(t, "/console/settings/audit?actor="+url.QueryEscape(hostile)),
		"bad project":     b.post(t, projectsPage, map[string]string{"name": hostile + "\x00"}),
		"bad invitation":  b.post(t, membersPage+"/invitations", map[string]string{"email": hostile, "role": "viewer"}),
		"created key":     b.post(t, apiKeysPage, map[string]string{"name": hostile, "project": project, "environment": "prod", "ends": "never"}),
		"welcome":         anybody.post(t, "/console/welcome", registration),
		"join":            anybody.post(t, "/console/join", registration),
		"reset":           anybody.post(t, "/console/reset", registration),
	} {
		if strings.Contains(got.body, "<script>") || strings.Contains(got.body, "<img src=x") {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
		if !strings.Contains(got.text(), hostile) {
			t.Errorf("%s does not show the name: %d %.3000s", name, got.status, got.body)
		}
	}
	if got := p.browser("192.0.2.4").signIn(t, hostile, hostile); strings.Contains(got.body, "<script>") || !strings.Contains(got.text(), "<script>") {
		t.Errorf("the sign-in: %s", got.body)
	}
}
