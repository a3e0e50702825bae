package app_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/tenants/app"
)

// full reports whether an answer names a reached limit, and a remedy.
func full(got answer, what string, limit int) bool {
	return got.status == 409 && got.get("code") == "limit_reached" && got.body["limit"] == float64(limit) &&
		strings.Contains(got.get("detail"), fmt.Sprintf("%d %s", limit, what)) && strings.Contains(got.get("detail"), "raise the limit")
}

// What an organization and a member have is limited.
func TestLimits(t *testing.T) {
	w := newWorld(t)
	w.bounds = app.BoundsConfig{MaxAPIKeys: 2, MaxServiceTokens: 2, MaxMembers: 2, MaxInvitations: 1, MaxSessions: 2}
	p := w.start(t, operatorToken)
	t.Run("Everything", func(t *testing.T) { testEverythingAnOrganizationHasIsLimited(t, p) })
	t.Run("Sessions", func(t *testing.T) { testSessionsAreLimited(t, p) })
}

// Everything else of an organization is limited, too; what has
// ended makes room, until too much has ended within a month.
func testEverythingAnOrganizationHasIsLimited(t *testing.T, p *process) {
	acme := p.tenant(t, "Acme") // has a key and a token
	post := func(path string, body map[string]any) answer {
		return p.call(t, operatorToken, "POST", path, text(body))
	}
	key := map[string]any{"project": acme.project, "environment": "dev", "name": "k"}
	token := map[string]any{"organization": acme.organization, "name": "t", "scopes": []string{"billing:read"}}
	person := func(i int) map[string]any {
		return member(acme.organization, fmt.Sprintf("m%d@example.com", i), "viewer")
	}
	invited := func(i int) map[string]any {
		return map[string]any{"organization": acme.organization, "email": fmt.Sprintf("i%d@example.com", i), "role": "viewer"}
	}

	second := post("/v1/api-keys", key)
	if got := post("/v1/api-keys", key); second.status != 201 || !full(got, "API keys", 2) {
		t.Errorf("keys: %d, then %d %s", second.status, got.status, got.text)
	}
	for range 2 { // also where there is no room a key can be exchanged, which makes one more
		rotated := p.call(t, operatorToken, "POST", "/v1/api-keys/"+second.get("id")+"/rotate", `{"overlap_seconds":0}`)
		if rotated.status != 201 {
			t.Fatalf("rotate: %d %s", rotated.status, rotated.text)
		}
		second = rotated
	}
	for i := 0; i < 2; i++ {
		p.must(t, 200, "POST", "/v1/api-keys/"+second.get("id")+"/revoke", "")
		second = post("/v1/api-keys", key)
		if second.status != 201 {
			t.Fatalf("a key in place of one that was revoked: %d %s", second.status, second.text)
		}
	}
	p.must(t, 200, "POST", "/v1/api-keys/"+second.get("id")+"/revoke", "")
	if got := post("/v1/api-keys", key); !full(got, "API keys that are in force or ended in the last 30 days", 6) {
		t.Errorf("keys made and revoked without end: %d %s", got.status, got.text)
	}

	if a, b := post("/v1/service-tokens", token), post("/v1/service-tokens", token); a.status != 201 || !full(b, "service tokens", 2) {
		t.Errorf("tokens: %d, then %d %s", a.status, b.status, b.text)
	}
	if a, b := post("/v1/invitations", invited(1)), post("/v1/invitations", invited(2)); a.status != 201 || !full(b, "open invitations", 1) {
		t.Errorf("invitations: %d, then %d %s", a.status, b.status, b.text)
	} else {
		post("/v1/members", person(1))
		post("/v1/members", person(2))
		if got := post("/v1/members", person(3)); !full(got, "members", 2) {
			t.Errorf("members: %d %s", got.status, got.text)
		}
		joined := p.browser("192.0.2.60").post(t, "/console/join",
			map[string]string{"code": codeOf(t, "weirinv", a.text), "email": "i1@example.com", "name": "I", "password": password})
		if joined.status != 409 || !strings.Contains(joined.text(), "2 members") {
			t.Errorf("who was invited: %d %s", joined.status, joined.body)
		}
	}
}

// The oldest session of a member with too many ends.
func testSessionsAreLimited(t *testing.T, p *process) {
	n := p.world.follow(t)
	acme := p.tenant(t, "Acme")
	first := p.signedIn(t, acme, "owner")
	second := first.again(t, ownerOf(acme), "198.51.100.2")
	third := first.again(t, ownerOf(acme), "198.51.100.3")
	n.awaitLookup(t, first.Session(), identity.ErrRevoked)
	n.awaitLookup(t, second.Session(), nil)
	n.awaitLookup(t, third.Session(), nil)
}

// An organization makes only so many changes a minute.
// Its tokens' changes do not count against its members,
// nor other organizations, and reads do not count.
func TestChangesAreLimited(t *testing.T) {
	w := newWorld(t)
	w.bounds = app.BoundsConfig{ChangesPerMinute: 3}
	p := w.start(t, operatorToken)
	acme, other := p.tenant(t, "Acme"), p.tenant(t, "Other")
	rename := func(of tenant) answer {
		return p.call(t, of.token, "PATCH", "/v1/projects/"+of.project, `{"name":"Another"}`)
	}
	for i := range 3 {
		if got := rename(acme); got.status != 200 {
			t.Fatalf("change %d: %d %s", i+1, got.status, got.text)
		}
	}
	got := rename(acme)
	if got.status != 429 || got.get("code") != "rate_limited" || got.header.Get("Retry-After") == "" || got.header.Get("X-RateLimit-Limit") != "3" {
		t.Errorf("one more: %d %v %s", got.status, got.header, got.text)
	}
	if got := p.call(t, acme.token, "GET", "/v1/projects?organization="+acme.organization, ""); got.status != 200 {
		t.Errorf("looking: %d %s", got.status, got.text)
	}
	if got := rename(other); got.status != 200 {
		t.Errorf("another organization: %d %s", got.status, got.text)
	}
	b := p.signedIn(t, acme, "owner")
	for i := range 3 {
		if got := b.post(t, projectsPage, map[string]string{"name": fmt.Sprint(i)}); got.status != 303 {
			t.Errorf("a member: %d %s", got.status, got.body)
		}
	}
	if got := b.post(t, projectsPage, map[string]string{"name": "more"}); got.status != 429 || got.header.Get("Retry-After") == "" {
		t.Errorf("a member once more: %d %v", got.status, got.header)
	}
}
