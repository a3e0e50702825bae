package app_test

import (
	"crypto/rand"
	"net/http"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
)

// A principal is one that may call, or try to.
type principal struct {
	name  string
	token string
}

// A probe requests one route of organization A. Each
// creates what it needs, so that probes do not interfere.
type probe struct {
	route string
	call  func(t *testing.T, p *process, token string, a tenant) answer
	// want is the status by principal: operator, admin of A, admin of B.
	want [3]int
}

// Each caller may access their own and nothing else: what is
// another organization's looks exactly like what does not exist.
// The routes are the router's: one without a probe fails here.
func TestIsolation(t *testing.T) {
	w := newWorld(t)
	w.bounds.MaxWebhooks = 1000 // each call has one of its own
	p := w.start(t, operatorToken)
	a, b := p.tenant(t, "A"), p.tenant(t, "B")
	weak := p.must(t, 201, "POST", "/v1/service-tokens",
		text(map[string]any{"organization": a.organization, "name": "billing", "scopes": []string{"billing:read"}}))
	able := []principal{{"the operator", operatorToken}, {"an admin of A", a.token}, {"an admin of B", b.token}}
	unable := map[principal]int{
		{"nobody", ""}: 401,
		{"a stranger", "weirsvc_" + strings.Repeat("f", 48)}: 401,
		{"an API key of A", a.secret}:                        401,
		{"a token without the scope", weak.get("token")}:     403,
	}
	probes := probes()
	for _, probe := range probes {
		for i, caller := range able {
			got := probe.call(t, p, caller.token, a)
			if got.status != probe.want[i] {
				t.Errorf("%s as %s: got %d %s, want %d", probe.route, caller.name, got.status, got.text, probe.want[i])
			}
			if caller.token == b.token && got.status/100 == 2 && strings.Contains(got.text, a.organization) {
				t.Errorf("%s shows %s something of A: %s", probe.route, caller.name, got.text)
			}
		}
		for caller, want := range unable {
			if got := probe.call(t, p, caller.token, a); got.status != want {
				t.Errorf("%s as %s: got %d %s, want %d", probe.route, caller.name, got.status, got.text, want)
			}
		}
	}
	everyRouteIsProbed(t, p, probes)
}

// A foreign id and an unknown one differ in nothing but the id.
func TestForeignLooksUnknown(t *testing.T) {
	w := newWorld(t)
	w.bounds.MaxWebhooks = 1000
	p := w.start(t, operatorToken)
	a, b := p.tenant(t, "A"), p.tenant(t, "B")
	for _, probe := range probes() {
		foreign := probe.call(t, p, b.token, a)
		if foreign.status != 404 {
			continue
		}
		unknown := tenant{organization: unknownID(a.organization), project: unknownID(a.project), key: unknownID(a.key), tokenID: unknownID(a.tokenID)}
		got := probe.call(t, p, b.token, unknown)
		replaced := strings.NewReplacer(unknown.organization, a.organization, unknown.project, a.project,
			unknown.key, a.key, unknown.tokenID, a.tokenID, got.get("request_id"), foreign.get("request_id")).Replace(got.text)
		if got.status != foreign.status || replaced != foreign.text || foreign.get("code") != "not_found" {
			t.Errorf("%s: foreign is %d %s, unknown is %d %s", probe.route, foreign.status, foreign.text, got.status, got.text)
		}
	}
}

// unknownID is an id of the same form that names nothing.
func unknownID(id string) string {
	return id[:len(id)-4] + "zzzz"
}

func probes() []probe {
	send := func(method, path string, body map[string]any) func(*testing.T, *process, string, tenant) answer {
		return func(t *testing.T, p *process, token string, a tenant) answer {
			fill := strings.NewReplacer("{organization}", a.organization, "{project}", a.project, "{key}", a.key, "{token}", a.tokenID)
			encoded := ""
			if body != nil {
				encoded = fill.Replace(text(body))
			}
			return p.call(t, token, method, fill.Replace(path), encoded)
		}
	}
	return []probe{
		{"POST /v1/organizations", send("POST", "/v1/organizations", map[string]any{"name": "C", "tier": "indie"}), [3]int{201, 403, 403}},
		{"GET /v1/organizations", send("GET", "/v1/organizations", nil), [3]int{200, 200, 200}},
		{"POST /v1/projects", send("POST", "/v1/projects", map[string]any{"organization": "{organization}", "name": "P"}), [3]int{201, 201, 404}},
		{"GET /v1/projects", send("GET", "/v1/projects?organization={organization}", nil), [3]int{200, 200, 404}},
		{"POST /v1/api-keys", send("POST", "/v1/api-keys", map[string]any{"project": "{project}", "environment": "dev", "name": "K"}), [3]int{201, 201, 404}},
		{"GET /v1/api-keys", send("GET", "/v1/api-keys?project={project}", nil), [3]int{200, 200, 404}},
		{"GET /v1/api-keys/{id}", send("GET", "/v1/api-keys/{key}", nil), [3]int{200, 200, 404}},
		{"PATCH /v1/api-keys/{id}", send("PATCH", "/v1/api-keys/{key}", map[string]any{"name": "K"}), [3]int{200, 200, 404}},
		{"POST /v1/api-keys/{id}/rotate", rotateFresh, [3]int{201, 201, 404}},
		{"GET /v1/organizations/{id}/security-policy", send("GET", "/v1/organizations/{organization}/security-policy", nil), [3]int{200, 200, 404}},
		{"PUT /v1/organizations/{id}/security-policy", send("PUT", "/v1/organizations/{organization}/security-policy",
			map[string]any{"leaked_keys": "notify", "plain_http_keys": "flag"}), [3]int{200, 200, 404}},
		{"POST /v1/api-keys/{id}/revoke", send("POST", "/v1/api-keys/{key}/revoke", map[string]any{"reason": "test"}), [3]int{200, 200, 404}},
		{"POST /v1/service-tokens", send("POST", "/v1/service-tokens", map[string]any{"organization": "{organization}", "name": "T", "scopes": []string{"billing:read"}}), [3]int{201, 201, 404}},
		{"POST /v1/service-tokens", send("POST", "/v1/service-tokens", map[string]any{"organization": "{organization}", "name": "T", "scopes": []string{"billing:write"}}), [3]int{201, 403, 404}},
		{"POST /v1/service-tokens", send("POST", "/v1/service-tokens", map[string]any{"organization": "*", "name": "T", "scopes": []string{"billing:read"}}), [3]int{201, 404, 404}},
		{"GET /v1/service-tokens", send("GET", "/v1/service-tokens?organization={organization}", nil), [3]int{200, 200, 404}},
		{"GET /v1/service-tokens", send("GET", "/v1/service-tokens?organization=*", nil), [3]int{200, 404, 404}},
		{"POST /v1/service-tokens/{id}/revoke", revokeFresh, [3]int{200, 200, 404}},
		{"GET /v1/sessions", listFreshSessions, [3]int{200, 200, 404}},
		{"POST /v1/sessions/{id}/revoke", revokeFreshSession, [3]int{200, 200, 404}},
		{"GET /v1/audit-events", send("GET", "/v1/audit-events?organization={organization}", nil), [3]int{200, 200, 404}},
		{"GET /v1/audit-events", send("GET", "/v1/audit-events?organization=*", nil), [3]int{200, 404, 404}},
		{"GET /v1/deletions", send("GET", "/v1/deletions?organization={organization}", nil), [3]int{200, 200, 404}},
		{"DELETE /v1/organizations/{id}", deleteFresh("/v1/organizations", `{"name":"C","tier":"indie"}`), [3]int{202, 403, 403}},
		{"POST /v1/organizations/{id}/restore", send("POST", "/v1/organizations/{organization}/restore", nil), [3]int{404, 403, 403}},
		{"DELETE /v1/projects/{id}", deleteFresh("/v1/projects", `{"organization":"{organization}","name":"P"}`), [3]int{202, 403, 403}},
		{"POST /v1/projects/{id}/restore", send("POST", "/v1/projects/{project}/restore", nil), [3]int{404, 403, 403}},
		{"GET /v1/organizations/{id}", send("GET", "/v1/organizations/{organization}", nil), [3]int{200, 200, 404}},
		{"PATCH /v1/organizations/{id}", send("PATCH", "/v1/organizations/{organization}", map[string]any{"name": "A"}), [3]int{200, 200, 404}},
		{"PATCH /v1/projects/{id}", send("PATCH", "/v1/projects/{project}", map[string]any{"name": "Store"}), [3]int{200, 200, 404}},
		{"POST /v1/members", addFresh, [3]int{201, 403, 403}},
		{"GET /v1/members", send("GET", "/v1/members?organization={organization}", nil), [3]int{200, 200, 404}},
		{"PATCH /v1/members/{id}", onFreshMember("PATCH", "", `{"role":"billing"}`), [3]int{200, 200, 404}},
		{"POST /v1/members/{id}/remove", onFreshMember("POST", "/remove", ""), [3]int{200, 200, 404}},
		{"POST /v1/members/{id}/reset-code", onFreshMember("POST", "/reset-code", ""), [3]int{201, 201, 404}},
		{"GET /v1/api-keys", send("GET", "/v1/api-keys?organization={organization}", nil), [3]int{200, 200, 404}},
		{"POST /v1/invitations", inviteFresh, [3]int{201, 201, 404}},
		{"GET /v1/invitations", send("GET", "/v1/invitations?organization={organization}", nil), [3]int{200, 200, 404}},
		{"POST /v1/invitations/{id}/resend", onFreshInvitation("/resend"), [3]int{200, 200, 404}},
		{"POST /v1/invitations/{id}/revoke", onFreshInvitation("/revoke"), [3]int{200, 200, 404}},
		{"GET /v1/organizations/{organization}/webhooks", send("GET", "/v1/organizations/{organization}/webhooks", nil), [3]int{200, 200, 404}},
		{"POST /v1/organizations/{organization}/webhooks", send("POST", "/v1/organizations/{organization}/webhooks", newWebhook), [3]int{201, 201, 404}},
		{"GET /v1/organizations/{organization}/webhooks/{webhook}", onFreshWebhook("GET", "", ""), [3]int{200, 200, 404}},
		{"PATCH /v1/organizations/{organization}/webhooks/{webhook}", onFreshWebhook("PATCH", "", `{"state":"off"}`), [3]int{200, 200, 404}},
		{"DELETE /v1/organizations/{organization}/webhooks/{webhook}", onFreshWebhook("DELETE", "", ""), [3]int{200, 200, 404}},
		{"POST /v1/organizations/{organization}/webhooks/{webhook}/rotate", onFreshWebhook("POST", "/rotate", ""), [3]int{200, 200, 404}},
		{"POST /v1/organizations/{organization}/webhooks/{webhook}/test", onFreshWebhook("POST", "/test", ""), [3]int{202, 202, 404}},
		{"POST /v1/organizations/{organization}/webhooks/{webhook}/replay", onFreshWebhook("POST", "/replay", `{"since":"2026-11-20T00:00:00Z"}`), [3]int{202, 202, 404}},
		{"GET /v1/organizations/{organization}/webhooks/{webhook}/deliveries", onFreshWebhook("GET", "/deliveries", ""), [3]int{200, 200, 404}},
		{"POST /v1/organizations/{organization}/webhooks/{webhook}/deliveries/{delivery}/replay", replayFresh, [3]int{202, 202, 404}},
	}
}

// revokeFresh revokes a token that the operator creates, since revoking
// the callers' own would end the test. An unknown tenant gets no token.
func revokeFresh(t *testing.T, p *process, token string, a tenant) answer {
	t.Helper()
	id := a.tokenID
	if !strings.HasSuffix(id, "zzzz") {
		id = p.must(t, 201, "POST", "/v1/service-tokens",
			text(map[string]any{"organization": a.organization, "name": "T", "scopes": []string{"x:y"}})).get("id")
	}
	got := p.call(t, token, "POST", "/v1/service-tokens/"+id+"/revoke", `{"reason":"test"}`)
	got.text = strings.ReplaceAll(got.text, id, a.tokenID)
	return got
}

// rotateFresh rotates a key that the operator creates: a rotated
// key can't be rotated again. An unknown tenant gets no key.
func rotateFresh(t *testing.T, p *process, token string, a tenant) answer {
	t.Helper()
	id := a.key
	if !strings.HasSuffix(id, "zzzz") {
		id = p.must(t, 201, "POST", "/v1/api-keys", text(map[string]any{"project": a.project, "environment": "dev", "name": "K"})).get("id")
	}
	got := p.call(t, token, "POST", "/v1/api-keys/"+id+"/rotate", "")
	got.text = strings.ReplaceAll(got.text, id, a.key)
	return got
}

// addFresh adds a member with a new address.
func addFresh(t *testing.T, p *process, token string, a tenant) answer {
	t.Helper()
	return p.call(t, token, "POST", "/v1/members", text(member(a.organization, "m"+rand.Text()+"@example.com", "viewer")))
}

// listFreshSessions lists the sessions of a
// new member; an unknown tenant has none.
func listFreshSessions(t *testing.T, p *process, token string, a tenant) answer {
	t.Helper()
	id, _ := freshSession(t, p, a)
	got := p.call(t, token, "GET", "/v1/sessions?member="+id, "")
	got.text = strings.ReplaceAll(got.text, id, a.tokenID)
	return got
}

// revokeFreshSession ends a session of a new member.
func revokeFreshSession(t *testing.T, p *process, token string, a tenant) answer {
	t.Helper()
	_, id := freshSession(t, p, a)
	got := p.call(t, token, "POST", "/v1/sessions/"+id+"/revoke", `{"reason":"test"}`)
	got.text = strings.ReplaceAll(got.text, id, a.tokenID)
	return got
}

func freshSession(t *testing.T, p *process, a tenant) (owner, session string) {
	t.Helper()
	if strings.HasSuffix(a.tokenID, "zzzz") {
		return "mem_zzzz", "ses_zzzz"
	}
	email := "m" + strings.ToLower(rand.Text()) + "@example.com"
	owner = p.must(t, 201, "POST", "/v1/members", text(member(a.organization, email, "viewer"))).get("id")
	p.browser("192.0.2.77").signIn(t, email, password)
	return owner, p.must(t, 200, "GET", "/v1/sessions?member="+owner, "").items(t)[0]["id"].(string)
}

// isUnknown reports whether a tenant has only unknown ids.
func isUnknown(a tenant) bool { return strings.HasSuffix(a.organization, "zzzz") }

// onFreshMember changes a member that the operator adds.
func onFreshMember(method, path, body string) func(*testing.T, *process, string, tenant) answer {
	return func(t *testing.T, p *process, token string, a tenant) answer {
		t.Helper()
		id := "mem_zzzz"
		if !isUnknown(a) {
			id = addFresh(t, p, operatorToken, a).get("id")
		}
		got := p.call(t, token, method, "/v1/members/"+id+path, body)
		got.text = strings.ReplaceAll(got.text, id, "mem_zzzz")
		return got
	}
}

func inviteFresh(t *testing.T, p *process, token string, a tenant) answer {
	t.Helper()
	return p.call(t, token, "POST", "/v1/invitations",
		text(map[string]any{"organization": a.organization, "email": "i" + rand.Text() + "@example.com", "role": "viewer"}))
}

// onFreshInvitation changes an invitation that the operator creates.
func onFreshInvitation(path string) func(*testing.T, *process, string, tenant) answer {
	return func(t *testing.T, p *process, token string, a tenant) answer {
		t.Helper()
		id := "inv_zzzz"
		if !isUnknown(a) {
			id = inviteFresh(t, p, operatorToken, a).get("id")
		}
		got := p.call(t, token, "POST", "/v1/invitations/"+id+path, "")
		got.text = strings.ReplaceAll(got.text, id, "inv_zzzz")
		return got
	}
}

// newWebhook has an endpoint that nobody has.
var newWebhook = map[string]any{"url": "https://hooks.invalid/weir", "events": []string{"quota.exhausted"}}

func freshWebhook(t *testing.T, p *process, a tenant) (path, id string) {
	t.Helper()
	path, id = "/v1/organizations/"+a.organization+"/webhooks", "whk_zzzz"
	if !isUnknown(a) {
		id = p.must(t, 201, "POST", path, text(newWebhook)).get("id")
	}
	return path + "/" + id, id
}

// onFreshWebhook changes a webhook that the operator creates.
func onFreshWebhook(method, suffix, body string) func(*testing.T, *process, string, tenant) answer {
	return func(t *testing.T, p *process, token string, a tenant) answer {
		t.Helper()
		path, id := freshWebhook(t, p, a)
		got := p.call(t, token, method, path+suffix, body)
		got.text = strings.ReplaceAll(got.text, id, "whk_zzzz")
		return got
	}
}

// replayFresh replays a message that the operator queues.
func replayFresh(t *testing.T, p *process, token string, a tenant) answer {
	t.Helper()
	path, id := freshWebhook(t, p, a)
	delivery := "msg_zzzz"
	if !isUnknown(a) {
		delivery = p.must(t, 202, "POST", path+"/test", "").get("id")
	}
	got := p.call(t, token, "POST", path+"/deliveries/"+delivery+"/replay", "")
	got.text = strings.NewReplacer(id, "whk_zzzz", delivery, "msg_zzzz").Replace(got.text)
	return got
}

// deleteFresh deletes what the operator creates.
func deleteFresh(path, body string) func(*testing.T, *process, string, tenant) answer {
	return func(t *testing.T, p *process, token string, a tenant) answer {
		t.Helper()
		id := "zzzz"
		if !isUnknown(a) {
			id = p.must(t, 201, "POST", path, strings.ReplaceAll(body, "{organization}", a.organization)).get("id")
		}
		return p.call(t, token, "DELETE", path+"/"+id, "")
	}
}

// open are the routes that need no credential.
func open() map[string]bool {
	return map[string]bool{
		"GET /healthz": true, "GET /readyz": true, "GET /v1/openapi.json": true, "GET /v1/tenants/openapi.json": true,
		"POST /v1/leak-reports": true, // it is signed
	}
}

func everyRouteIsProbed(t *testing.T, p *process, probes []probe) {
	t.Helper()
	probed := open()
	for _, probe := range probes {
		probed[probe.route] = true
	}
	walk(t, p, func(route string) {
		if !probed[route] {
			t.Errorf("%s is not probed", route)
		}
	})
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
	if err != nil {
		t.Fatal(err)
	}
}
