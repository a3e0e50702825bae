package app_test

import (
	"encoding/json"
	"math"
	"net/http"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/identity"
)

// Whoever signs in gets a session that is in force everywhere and ends everywhere; the cookie can't be read by scripts,
// sent in plaintext or planted by a neighboring host.
func TestSignInAndOut(t *testing.T) {
	w := newWorld(t)
	p := w.start(t, operatorToken)
	n := w.follow(t)
	acme := p.tenant(t, "Acme")
	b := p.signedIn(t, acme, "developer")

	cookie := b.cookies[identity.SessionCookie]
	if cookie.Name != "__Host-weir-session" || !cookie.Secure || !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode ||
		cookie.Path != "/" || cookie.Domain != "" || cookie.MaxAge < 12*60*60-60 || cookie.MaxAge > 12*60*60 {
		t.Errorf("the cookie is %+v", cookie)
	}
	if !regexp.MustCompile(`^weirses_[0-9a-f]{48}$`).MatchString(b.secret()) {
		t.Errorf("the secret is %q", b.secret())
	}
	holder := n.knows(t, b.secret(), nil)
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

	secret := b.secret()
	if got := b.post(t, "/console/sign-out", nil); got.status != 303 || got.header.Get("Location") != "/console/sign-in" || b.secret() != "" {
		t.Errorf("signing out: %d %v, cookie %q", got.status, got.header, b.secret())
	}
	n.knows(t, secret, identity.ErrRevoked)
	b.cookies[identity.SessionCookie] = cookie
	if got := b.get(t, projectsPage); got.status != 303 {
		t.Errorf("the old cookie still opens the settings: %d", got.status)
	}
	for _, hidden := range []string{secret, password, cookie.Value} {
		if strings.Contains(w.log.String(), hidden) {
			t.Error("a secret is logged")
		}
	}
	for _, record := range n.kept() {
		if strings.Contains(string(record.Value), "argon2") || strings.Contains(string(record.Value), secret) {
			t.Errorf("a secret is published: %s", record.Value)
		}
	}
}

// A session has 12 hours unless it is used, and everybody is told when they end.
func TestSessionExpires(t *testing.T) {
	w := newWorld(t)
	p := w.start(t, operatorToken)
	n := w.follow(t)
	before := time.Now()
	b := p.signedIn(t, p.tenant(t, "Acme"), "viewer")
	n.knows(t, b.secret(), nil)
	for _, record := range n.kept() {
		if string(record.Key) != contract.CredentialKey(b.secret()) {
			continue
		}
		var published contract.Credential
		if err := json.Unmarshal(record.Value, &published); err != nil || published.ExpiresAt == nil {
			t.Fatalf("the session never ends: %s, %v", record.Value, err)
		}
		if lasts := published.ExpiresAt.Sub(before); lasts < 12*time.Hour-time.Second || lasts > 12*time.Hour+patience {
			t.Errorf("the session lasts %s", lasts)
		}
	}
}

// allocated is how many bytes this process has ever allocated.
func allocated() uint64 {
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return memory.TotalAlloc
}

// A wrong password and an unknown address get the same page, and for both a password is compared with a hash, which takes
// nearly all of the time: 19 MiB are gone through. Other tests may allocate meanwhile, but not that much each time.
func TestSignInTellsNobodyWhoIsThere(t *testing.T) {
	w := newWorld(t)
	w.dearPasswords = true
	p := w.start(t, operatorToken)
	acme := p.tenant(t, "Acme")
	p.must(t, 201, "POST", "/v1/members", text(member(acme.organization, "ada@example.com", "owner")))
	try := func(email string, address int) (page, uint64) {
		b := p.browser("198.51.100." + string(rune('0'+address)))
		before := allocated()
		got := b.signIn(t, email, "wrong horse battery staple")
		return got, allocated() - before
	}
	const hashed = 19 << 20
	known, unknown := uint64(math.MaxUint64), uint64(math.MaxUint64)
	for i := range 5 {
		wrong, took := try("ADA@example.com ", i)
		known = min(known, took)
		nobody, took := try("eve@example.com", i)
		unknown = min(unknown, took)
		if wrong.status != 422 || wrong.status != nobody.status || strings.ReplaceAll(wrong.body, "ada@", "eve@") != nobody.body {
			t.Fatalf("a wrong password: %d %s\nan unknown address: %d %s", wrong.status, wrong.body, nobody.status, nobody.body)
		}
		if strings.Contains(wrong.body, "wrong horse") {
			t.Error("the password is shown")
		}
	}
	if known < hashed || unknown < hashed {
		t.Errorf("a wrong password takes %d bytes, an unknown address %d, a hash %d", known, unknown, hashed)
	}
	for _, email := range []string{"", "ada", "ada@example.com\x00", strings.Repeat("a", 1000) + "@example.com", "ada@example.com' OR '1'='1"} {
		if got, _ := try(email, 6); got.status != 422 {
			t.Errorf("address %q: %d", email, got.status)
		}
	}
}

// Guessing ends soon, for one address of a member and for one network, also when the right password comes at last.
func TestAttemptsToSignInAreLimited(t *testing.T) {
	p := newWorld(t).start(t, operatorToken)
	acme := p.tenant(t, "Acme")
	p.must(t, 201, "POST", "/v1/members", text(member(acme.organization, "ada@example.com", "owner")))
	attempts := func(email func(i int) string, address func(i int) string) (allowed int, last page) {
		for i := range 40 {
			last = p.browser(address(i)).signIn(t, email(i), "wrong horse battery staple")
			if last.status == 429 {
				return i, last
			}
		}
		return 40, last
	}
	spread := func(i int) string { return "203.0.113." + strings.Repeat("1", 1+i/10) + string(rune('0'+i%10)) }
	allowed, last := attempts(func(int) string { return "ada@example.com" }, spread)
	if allowed != 10 || last.header.Get("Retry-After") == "" {
		t.Errorf("%d attempts for one member from everywhere, then %d %v", allowed, last.status, last.header)
	}
	if got := p.browser("192.0.2.99").signIn(t, "ada@example.com", password); got.status != 429 {
		t.Errorf("the right password after too many wrong ones: %d", got.status)
	}
	someone := func(i int) string { return "user" + strings.Repeat("x", i) + "@example.com" }
	if allowed, _ := attempts(someone, func(int) string { return "192.0.2.50" }); allowed != 20 {
		t.Errorf("%d attempts from one address", allowed)
	}
	if allowed, _ := attempts(someone, func(i int) string { return "[2001:db8::" + strings.Repeat("1", 1+i%4) + "]" }); allowed != 20 {
		t.Errorf("%d attempts from one IPv6 network", allowed)
	}
}

// A cookie that was there before the sign-in means nothing after it, and a session of before has ended.
func TestSignInStartsANewSession(t *testing.T) {
	w := newWorld(t)
	p := w.start(t, operatorToken)
	n := w.follow(t)
	acme := p.tenant(t, "Acme")
	attacker := p.signedIn(t, acme, "viewer")
	planted := attacker.cookies[identity.SessionCookie]

	p.must(t, 201, "POST", "/v1/members", text(member(acme.organization, "ada@example.com", "owner")))
	victim := p.browser("192.0.2.8")
	victim.cookies[identity.SessionCookie] = planted
	if got := victim.signIn(t, "ada@example.com", password); got.status != 303 || victim.secret() == planted.Value {
		t.Fatalf("sign in: %d, secret as before: %t", got.status, victim.secret() == planted.Value)
	}
	n.knows(t, planted.Value, identity.ErrRevoked)
	if got := n.knows(t, victim.secret(), nil); got.Role() != "owner" {
		t.Errorf("the new session is %+v", got)
	}
	first := victim.secret()
	victim.cookies = map[string]*http.Cookie{}
	victim.signIn(t, "ada@example.com", password)
	if victim.secret() == first || victim.secret() == "" {
		t.Errorf("signing in twice gives %q twice", first)
	}
}

// A session is in force in the process that did not issue it as soon as it is asked for.
func TestSessionCrossesReplicas(t *testing.T) {
	w := newWorld(t)
	first, second := w.start(t, operatorToken), w.start(t, operatorToken)
	b := first.signedIn(t, first.tenant(t, "Acme"), "viewer")
	b.p = second
	if got := b.get(t, projectsPage); got.status != 200 {
		t.Errorf("the other replica does not let the member in: %d", got.status)
	}
}
