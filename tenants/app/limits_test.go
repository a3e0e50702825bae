package app_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/app"
)

// full reports whether an answer names a reached limit, and a remedy.
func full(got answer, what string, limit int) bool {
	return got.status == 409 && got.get("code") == "limit_reached" && got.body["limit"] == float64(limit) &&
		strings.Contains(got.get("detail"), fmt.Sprintf("%d %s", limit, what)) && strings.Contains(got.get("detail"), "raise the limit")
}

// An organization gets only so many projects, even from two
// processes at once. Repeated requests for existing ones are
// answered as before. Other organizations are unaffected.
func TestProjectsAreLimited(t *testing.T) {
	w := newWorld(t)
	w.bounds = app.BoundsConfig{MaxProjects: 5}
	first, second := w.start(t, operatorToken), w.start(t, operatorToken)
	acme, other := first.tenant(t, "Acme"), first.tenant(t, "Other") // which have one
	create := func(p *process, of tenant, name string, headers ...header) answer {
		return p.call(t, of.token, "POST", "/v1/projects", text(map[string]any{"organization": of.organization, "name": name}), headers...)
	}
	once := create(first, acme, "Once", header{"Idempotency-Key", "one"})
	var mu sync.Mutex
	var created, refused int
	var asking sync.WaitGroup
	for i := range 12 {
		asking.Go(func() {
			got := create([]*process{first, second}[i%2], acme, fmt.Sprint(i))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case got.status == 201:
				created++
			case full(got, "projects", 5):
				refused++
			default:
				t.Errorf("project %d: %d %s", i, got.status, got.text)
			}
		})
	}
	asking.Wait()
	if created != 3 || refused != 9 {
		t.Errorf("%d were created, %d refused", created, refused)
	}
	if again := create(first, acme, "Once", header{"Idempotency-Key", "one"}); again.status != 201 || again.text != once.text {
		t.Errorf("the first again: %d %s", again.status, again.text)
	}
	if got := create(first, other, "Theirs"); got.status != 201 {
		t.Errorf("another organization: %d %s", got.status, got.text)
	}
	b := first.signedIn(t, acme, "owner")
	if got := b.get(t, projectsPage); !strings.Contains(got.text(), "The organization has 5 projects, and may not have more.") || strings.Contains(got.body, "Create project</button>") {
		t.Errorf("the page does not say that it is full: %s", got.body)
	}
	if got := b.post(t, projectsPage, map[string]string{"name": "One more"}); got.status != 409 || !strings.Contains(got.text(), "Delete one") {
		t.Errorf("one more from the console: %d %s", got.status, got.body)
	}
}

// Projects created and deleted without end reach a
// limit, too: each leaves its id in every process.
func TestDeletedProjectsAreLimited(t *testing.T) {
	w := newWorld(t)
	w.bounds = app.BoundsConfig{MaxProjects: 2}
	p := w.start(t, operatorToken)
	others := w.ingestor(t)
	acme := p.tenant(t, "Acme") // has one
	create := func() answer {
		return p.call(t, acme.token, "POST", "/v1/projects", text(map[string]any{"organization": acme.organization, "name": "Brief"}))
	}
	for i := range 5 {
		created := create()
		if created.status != 201 {
			t.Fatalf("project %d: %d %s", i, created.status, created.text)
		}
		of := tenants.Deletable{Organization: acme.organization, Project: created.get("id")}
		p.must(t, 202, "DELETE", "/v1/projects/"+of.Project, "")
		p.deletion(t, of, tenants.Erasing)
		others.erased(of)
		p.deletion(t, of, tenants.Gone)
	}
	if got := create(); !full(got, "projects that exist or were deleted in the last 30 days", 6) || !strings.Contains(got.get("detail"), "Wait") {
		t.Errorf("one more: %d %s", got.status, got.text)
	}
}

// Everything else of an organization is limited, too; what has
// ended makes room, until too much has ended within a month.
func TestEverythingAnOrganizationHasIsLimited(t *testing.T) {
	w := newWorld(t)
	w.bounds = app.BoundsConfig{MaxAPIKeys: 2, MaxServiceTokens: 2, MaxMembers: 2, MaxInvitations: 1}
	p := w.start(t, operatorToken)
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
func TestSessionsAreLimited(t *testing.T) {
	w := newWorld(t)
	w.bounds = app.BoundsConfig{MaxSessions: 2}
	p := w.start(t, operatorToken)
	n := w.follow(t)
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
