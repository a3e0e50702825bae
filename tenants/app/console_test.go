package app_test

import (
	"net/url"
	"strings"
	"testing"
)

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
		"created key":     b.post(t, apiKeysPage, map[string]string{"name": hostile, "project": project, "environment": "prod"}),
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
