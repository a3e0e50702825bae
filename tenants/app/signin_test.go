package app_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/identity"
)

// A sign-in gives a session that starts and ends everywhere. Its cookie
// can't be read by scripts, sent in plaintext or set by a neighboring host.
func testSignInAndOut(t *testing.T, p *process) {
	n := p.world.follow(t)
	acme := p.tenant(t, "Acme")
	b := p.signedIn(t, acme, "developer")

	cookie := b.Cookies[identity.SessionCookie]
	if cookie.Name != "__Host-weir-session" || !cookie.Secure || !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode ||
		cookie.Path != "/" || cookie.Domain != "" || cookie.MaxAge < 12*60*60-60 || cookie.MaxAge > 12*60*60 {
		t.Errorf("the cookie is %+v", cookie)
	}
	if !regexp.MustCompile(`^weirses_[0-9a-f]{48}$`).MatchString(b.Session()) {
		t.Errorf("the secret is %q", b.Session())
	}
	holder := n.awaitLookup(t, b.Session(), nil)
	if holder.Kind != contract.CredentialSession || holder.Organization != acme.organization || holder.Role() != "developer" ||
		!strings.HasPrefix(holder.Member, "mem_") || !strings.HasPrefix(holder.ID, "ses_") {
		t.Errorf("others know the session as %+v", holder)
	}
	if got := b.get(t, projectsPage); got.status != 200 || !strings.Contains(got.body, "Acme") {
		t.Errorf("the settings: %d %s", got.status, got.body)
	}
	if got := b.get(t, "/console/sign-in"); got.status != 303 || got.header.Get("Location") != "/console" {
		t.Errorf("signing in again: %d %v", got.status, got.header)
	}

	secret := b.Session()
	if got := b.post(t, "/console/sign-out", nil); got.status != 303 || got.header.Get("Location") != "/console/sign-in" || b.Session() != "" {
		t.Errorf("signing out: %d %v, cookie %q", got.status, got.header, b.Session())
	}
	n.awaitLookup(t, secret, identity.ErrRevoked)
	b.Cookies[identity.SessionCookie] = cookie
	if got := b.get(t, projectsPage); got.status != 303 {
		t.Errorf("the old cookie still opens the settings: %d", got.status)
	}
	for _, hidden := range []string{secret, password, cookie.Value} {
		if strings.Contains(p.world.log.String(), hidden) {
			t.Error("a secret is logged")
		}
	}
	for _, record := range n.kept() {
		if strings.Contains(string(record.Value), "argon2") || strings.Contains(string(record.Value), secret) {
			t.Errorf("a secret is published: %s", record.Value)
		}
	}
}

// An unused session has 12 hours, and its expiry is published.
func testSessionExpires(t *testing.T, p *process) {
	n := p.world.follow(t)
	before := time.Now()
	b := p.signedIn(t, p.tenant(t, "Acme"), "viewer")
	n.awaitLookup(t, b.Session(), nil)
	for _, record := range n.kept() {
		if string(record.Key) != contract.CredentialKey(b.Session()) {
			continue
		}
		var published contract.Credential
		if err := json.Unmarshal(record.Value, &published); err != nil || published.ExpiresAt == nil {
			t.Fatalf("the session never ends: %s, %v", record.Value, err)
		}
		if lasts := published.ExpiresAt.Sub(before); lasts < 12*time.Hour-time.Second || lasts > 12*time.Hour+timeout {
			t.Errorf("the session lasts %s", lasts)
		}
	}
}

// A session is in force at once in a process that did not issue it.
func TestSessionCrossesReplicas(t *testing.T) {
	w := newWorld(t)
	first, second := w.start(t, operatorToken), w.start(t, operatorToken)
	b := first.signedIn(t, first.tenant(t, "Acme"), "viewer")
	b.p = second
	if got := b.get(t, projectsPage); got.status != 200 {
		t.Errorf("the other replica does not let the member in: %d", got.status)
	}
}
