package app_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/identity"
)

const accountPage = "/console/settings/account"

// again signs the same member in by another browser.
func (b *browser) again(t *testing.T, email, address string) *browser {
	t.Helper()
	other := b.p.browser(address)
	if got := other.signIn(t, email, password); got.status != 303 {
		t.Fatalf("sign in again: %d %s", got.status, got.body)
	}
	return other
}

func ownerOf(of tenant) string { return emailOf(of, "owner") }

// emailOf is the address of signedIn's member.
func emailOf(of tenant, role string) string {
	return role + "@" + strings.ReplaceAll(of.organization, "_", "-") + ".example.com"
}

// Members see their sessions, and end those
// they do not recognize: one, or all others.
func testOwnSessions(t *testing.T, p *process) {
	n := p.world.follow(t)
	acme := p.tenant(t, "Acme")
	b := p.signedIn(t, acme, "owner")
	second, third := b.again(t, ownerOf(acme), "198.51.100.2"), b.again(t, ownerOf(acme), "[2001:db8::3]")

	listed := b.get(t, accountPage).text()
	for _, want := range []string{p.address, "198.51.100.2", "2001:db8::3", "This session", "Password"} {
		if !strings.Contains(listed, want) {
			t.Errorf("the list lacks %q: %s", want, listed)
		}
	}
	if strings.Count(listed, "This session") != 1 || strings.Contains(listed, b.Session()) {
		t.Errorf("the list: %s", listed)
	}
	id := n.awaitLookup(t, second.Session(), nil).ID
	if got := b.post(t, accountPage+"/sessions/"+id+"/end", nil); got.status != 303 || !strings.Contains(b.get(t, accountPage).body, "The session was signed out") {
		t.Errorf("sign out one: %d", got.status)
	}
	n.awaitLookup(t, second.Session(), identity.ErrRevoked)
	n.awaitLookup(t, third.Session(), nil)
	if got := b.post(t, accountPage+"/sessions/end-others", nil); got.status != 303 {
		t.Errorf("sign out the others: %d %s", got.status, got.body)
	}
	n.awaitLookup(t, third.Session(), identity.ErrRevoked)
	n.awaitLookup(t, b.Session(), nil)
	if listed := b.get(t, accountPage).body; strings.Contains(listed, "198.51.100.2") || strings.Contains(listed, "/end-others") {
		t.Errorf("after that: %s", listed)
	}
}

// Sessions of others are neither shown nor
// ended, even in the same organization.
func testSessionsAreOnesOwn(t *testing.T, p *process) {
	n := p.world.follow(t)
	acme, other := p.tenant(t, "Acme"), p.tenant(t, "Other")
	owner, viewer, stranger := p.signedIn(t, acme, "owner"), p.signedIn(t, acme, "viewer"), p.signedIn(t, other, "owner")
	for _, theirs := range []*browser{viewer, stranger} {
		id := n.awaitLookup(t, theirs.Session(), nil).ID
		if strings.Contains(owner.get(t, accountPage).body, id) {
			t.Error("somebody else's session is shown")
		}
		got, unknown := owner.post(t, accountPage+"/sessions/"+id+"/end", nil), owner.post(t, accountPage+"/sessions/ses_0/end", nil)
		if got.status != 404 || strings.ReplaceAll(got.body, id, "ses_0") != unknown.body {
			t.Errorf("ending it: %d %s", got.status, got.body)
		}
		owner.post(t, accountPage+"/sessions/end-others", nil)
		n.awaitLookup(t, theirs.Session(), nil)
	}
}

// An administrator's token lists and ends the sessions of its
// organization's members, but not those of owners; an operator's all.
func testSessionsByTheAPI(t *testing.T, p *process) {
	n := p.world.follow(t)
	acme, other := p.tenant(t, "Acme"), p.tenant(t, "Other")
	b := p.signedIn(t, acme, "admin")
	holder := n.awaitLookup(t, b.Session(), nil)
	second := b.again(t, emailOf(acme, "admin"), "198.51.100.2")
	owner := p.signedIn(t, acme, "owner")
	of := n.awaitLookup(t, owner.Session(), nil)
	for method, path := range map[string]string{"GET": "/v1/sessions?member=" + of.Member, "POST": "/v1/sessions/" + of.ID + "/revoke"} {
		if got := p.call(t, acme.token, method, path, ""); got.status != 403 || !strings.Contains(got.text, "concerns owners") {
			t.Errorf("%s %s: %d %s", method, path, got.status, got.text)
		}
	}
	n.awaitLookup(t, owner.Session(), nil)

	list := "/v1/sessions?member=" + holder.Member
	first := p.call(t, acme.token, "GET", list+"&limit=1", "")
	session := first.items(t)[0]
	if session["id"] != holder.ID || session["state"] != "active" || session["address"] != p.address || session["method"] != "password" {
		t.Errorf("the session is %v", session)
	}
	if byOperator := p.call(t, operatorToken, "GET", list+"&limit=1", "").items(t); len(byOperator) != 1 || byOperator[0]["id"] != holder.ID {
		t.Errorf("an operator lists %v", byOperator)
	}
	next := p.call(t, acme.token, "GET", list+"&limit=1&cursor="+first.get("next_cursor"), "").items(t)
	if len(next) != 1 || next[0]["address"] != "198.51.100.2" || strings.Contains(first.text, b.Session()) {
		t.Errorf("the next one is %v", next)
	}
	for path, status := range map[string]int{list: 404, "/v1/sessions?member=mem_0": 404, "/v1/sessions": 400, "/v1/sessions?member=%00": 404} {
		if got := p.call(t, other.token, "GET", path, ""); got.status != status {
			t.Errorf("another organization: %s: %d %s", path, got.status, got.text)
		}
	}
	revoke := "/v1/sessions/" + holder.ID + "/revoke"
	if got := p.call(t, other.token, "POST", revoke, ""); got.status != 404 {
		t.Errorf("another organization ends it: %d", got.status)
	}
	for range 2 { // again: changes nothing
		got := p.call(t, acme.token, "POST", revoke, text(map[string]any{"reason": "lost laptop"}))
		if got.status != 200 || got.get("state") != "revoked" || got.get("revoked_reason") != "lost laptop" || got.get("address") != p.address {
			t.Errorf("ending it: %d %s", got.status, got.text)
		}
	}
	n.awaitLookup(t, b.Session(), identity.ErrRevoked)
	n.awaitLookup(t, second.Session(), nil)
}

// A session is distinguished by its browser's User-Agent, shown as text.
func testClientsAreShownAsText(t *testing.T, p *process) {
	acme := p.tenant(t, "Acme")
	b := p.signedIn(t, acme, "owner")
	evil := b.p.browser("192.0.2.9")
	agent := `"><script>alert(1)</script>` + strings.Repeat("x", 500)
	if got := evil.post(t, "/console/sign-in", map[string]string{"email": ownerOf(acme), "password": password}, header{"User-Agent", agent}); got.status != http.StatusSeeOther {
		t.Fatal(got.status)
	}
	shown := b.get(t, accountPage).body
	if strings.Contains(shown, "<script>alert") || !regexp.MustCompile(`title="&#34;&gt;&lt;script&gt;alert\(1\)`).MatchString(shown) || strings.Contains(shown, strings.Repeat("x", 200)) {
		t.Errorf("shown as %s", shown)
	}
}

// Only tests use cheap hashes of passwords: the default is slow to guess.
func TestPasswordsAreDear(t *testing.T) {
	w := newWorld(t)
	w.expensivePasswords = true
	p := w.start(t, operatorToken)
	p.add(t, p.tenant(t, "Acme").organization, "ada@example.com", "owner")
	if kept := w.dump(t); !strings.Contains(kept, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Error("the password is hashed otherwise")
	}
}
