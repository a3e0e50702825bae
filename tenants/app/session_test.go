package app_test

import (
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/tenants"
)

const (
	confirmPage = "/console/confirm"
	newKeyPage  = apiKeysPage + "/new" // needs a proof that is not old
)

// A watch is a clock that a test sets forward.
type watch struct{ ahead atomic.Int64 }

func (c *watch) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func (c *watch) pass(d time.Duration) { c.ahead.Add(int64(d)) }

// visit looks at a page as a person does: what leads elsewhere is followed, at most five times.
func (b *browser) visit(t *testing.T, path string) (page, string) {
	t.Helper()
	for range 5 {
		got := b.navigate(t, path)
		if got.status != 303 {
			return got, path
		}
		path = got.header.Get("Location")
	}
	t.Fatalf("the console leads from page to page, at last to %s", path)
	return page{}, ""
}

func (b *browser) navigate(t *testing.T, path string) page {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), "GET", "https://weir.example"+path, nil)
	request.Header.Set("Sec-Fetch-Mode", "navigate")
	return b.send(t, request)
}

// signedInLater returns a browser in which an owner has signed in, and the clock of its server.
func signedInLater(t *testing.T) (*browser, *watch, *neighbour) {
	t.Helper()
	w, clock := newWorld(t), &watch{}
	w.clock = clock.now
	p := w.start(t, operatorToken)
	n := w.follow(t)
	return p.signedIn(t, p.tenant(t, "Acme"), "owner"), clock, n
}

// A session that is used goes on, with another secret each time, and ends a week after the sign-in.
func TestSessionLastsAsLongAsItIsUsed(t *testing.T) {
	b, clock, n := signedInLater(t)
	first, secrets := b.secret(), map[string]bool{}
	for used := time.Duration(0); used < tenants.SessionLasts-tenants.SessionIdles; used += 2 * tenants.RenewAfter {
		before := b.secret()
		clock.pass(tenants.RenewAfter - time.Minute)
		if b.visit(t, projectsPage); b.secret() != before {
			t.Fatalf("after %s: renewed before it was due", used)
		}
		clock.pass(tenants.RenewAfter + time.Minute)
		if got, at := b.visit(t, projectsPage+"?x=1"); got.status != 200 || at != projectsPage+"?x=1" || b.secret() == before {
			t.Fatalf("after %s: %d at %s, another secret: %t", used, got.status, at, b.secret() != before)
		}
		secrets[b.secret()] = true
	}
	if n.knows(t, b.secret(), nil); secrets[first] || len(secrets) != 26 {
		t.Errorf("%d secrets", len(secrets))
	}
	clock.pass(tenants.SessionIdles)
	if _, at := b.visit(t, projectsPage); !strings.HasPrefix(at, "/console/sign-in") {
		t.Errorf("after a week: %s", at)
	}
}

// A session that is not used ends by itself.
func TestIdleSessionEnds(t *testing.T) {
	b, clock, _ := signedInLater(t)
	clock.pass(tenants.SessionIdles)
	got, at := b.visit(t, apiKeysPage+"?project=p")
	if at != "/console/sign-in?to="+url.QueryEscape(apiKeysPage+"?project=p") || !strings.Contains(got.text(), `name="to" value="`+apiKeysPage+`?project=p"`) {
		t.Errorf("after 12 hours: %s %s", at, got.body)
	}
}

// All tabs that come with the secret of before get the same new one, however often its answer gets lost; a moment later
// the old one is worth nothing.
func TestRenewalsAreTheSameForAllTabs(t *testing.T) {
	b, clock, n := signedInLater(t)
	old := b.cookies[identity.SessionCookie]
	clock.pass(tenants.RenewAfter)
	b.visit(t, projectsPage)
	renewed := b.secret()
	if renewed == old.Value {
		t.Fatal("the session was not renewed")
	}
	other := b.p.browser("192.0.2.8")
	other.cookies[identity.SessionCookie] = old
	if got := other.get(t, projectsPage); got.status != 200 {
		t.Errorf("what was on its way with the old secret: %d", got.status)
	}
	if got, _ := other.visit(t, projectsPage); got.status != 200 || other.secret() != renewed {
		t.Errorf("another tab: %d, the same secret: %t", got.status, other.secret() == renewed)
	}
	clock.pass(tenants.SecretOverlap)
	other.cookies[identity.SessionCookie] = old
	if _, at := other.visit(t, projectsPage); !strings.HasPrefix(at, "/console/sign-in") {
		t.Errorf("the old secret still opens %s", at)
	}
	n.knows(t, renewed, nil)
	if got := b.post(t, "/console/sign-out", nil); got.status != 303 {
		t.Errorf("signing out: %d", got.status)
	}
	n.knows(t, renewed, identity.ErrRevoked)
}

// Signing out ends all secrets of a session at once, also the one that would work a moment longer.
func TestSignOutEndsReplacedSecretsToo(t *testing.T) {
	b, clock, n := signedInLater(t)
	first := b.secret()
	clock.pass(tenants.RenewAfter)
	b.visit(t, projectsPage)
	b.post(t, "/console/sign-out", nil)
	n.knows(t, first, identity.ErrRevoked)
}

// Nobody leads a member out of the console by what stands in an address.
func TestDetoursLeadBackOnly(t *testing.T) {
	b, clock, _ := signedInLater(t)
	for _, to := range []string{
		"https://evil.example/", "//evil.example", "/\\evil.example", "\\\\evil.example", "/console/../../evil", "/console/%2e%2e/v1/logs",
		"javascript:alert(1)", "/v1/logs", "/console/session/renew?to=/console/logs", "/console/sign-out", "/console\n/logs", "/console/ x",
		"https:/console/logs", "/consolee/logs", "/console/logs\x00", strings.Repeat("/console/logs", 1000), "", "%", "//console/logs", "/console/é",
	} {
		query := "?to=" + url.QueryEscape(to)
		if got := b.navigate(t, "/console/session/renew"+query); got.status != 303 || got.header.Get("Location") != "/console" {
			t.Errorf("renewing leads from %q to %d %q", to, got.status, got.header.Get("Location"))
		}
		if got := b.navigate(t, "/console/sign-in"+query); got.status != 303 || got.header.Get("Location") != "/console" {
			t.Errorf("signing in leads from %q to %d %q", to, got.status, got.header.Get("Location"))
		}
		got := b.post(t, confirmPage, map[string]string{"to": to, "password": password})
		if at := got.header.Get("Location"); at != "/console" && (to != "" || at != confirmPage) {
			t.Errorf("confirming leads from %q to %d %q", to, got.status, at)
		}
		clock.pass(time.Minute) // for another attempt
	}
	for _, to := range []string{projectsPage, apiKeysPage + "?project=a%20b&x=%2F%2Fy", "/console/errors/grp_1", "/console/confirm?to=%2Fconsole%2Flogs"} {
		if got := b.navigate(t, "/console/session/renew?to="+url.QueryEscape(to)); got.header.Get("Location") != to {
			t.Errorf("renewing leads from %q to %q", to, got.header.Get("Location"))
		}
	}
}

// What concerns who gets in needs a proof of who is there that is not old. A form that was shown in time can be sent; one
// that comes later is not carried out, and its sender is told how to send it again.
func TestConfirmation(t *testing.T) {
	b, clock, n := signedInLater(t)
	secret := b.secret()
	clock.pass(10 * time.Minute)
	asked, at := b.visit(t, newKeyPage)
	if at != confirmPage+"?to="+url.QueryEscape(newKeyPage) || !strings.Contains(asked.body, "Confirm that it is you") {
		t.Fatalf("after ten minutes: %s %s", at, asked.body)
	}
	form := map[string]string{"to": newKeyPage, "password": "wrong horse battery staple"}
	if got := b.post(t, confirmPage, form); got.status != 422 || !strings.Contains(got.body, `value="`+newKeyPage+`"`) || b.secret() != secret {
		t.Errorf("a wrong password: %d %s", got.status, got.body)
	}
	form["password"] = password
	if got := b.post(t, confirmPage, form); got.status != 303 || got.header.Get("Location") != newKeyPage || b.secret() == secret {
		t.Fatalf("the password: %d %v", got.status, got.header)
	}
	if got, at := b.visit(t, newKeyPage); got.status != 200 || at != newKeyPage {
		t.Errorf("after that: %d %s", got.status, at)
	}
	if held := n.knows(t, b.secret(), nil); clock.now().Sub(held.AuthenticatedAt) > time.Minute {
		t.Errorf("others know of a proof at %s", held.AuthenticatedAt)
	}
	if held := n.knows(t, secret, nil); !held.AuthenticatedAt.IsZero() {
		t.Error("the secret before proves something too")
	}
	clock.pass(14 * time.Minute)
	if got := b.post(t, apiKeysPage, nil); got.status == 403 {
		t.Errorf("a form that was shown in time: %d %s", got.status, got.body)
	}
	clock.pass(time.Minute)
	got := b.post(t, apiKeysPage, nil)
	if got.status != 403 || !regexp.MustCompile(`href="/console/confirm" target="_blank"`).MatchString(got.body) {
		t.Errorf("a form that comes late: %d %s", got.status, got.body)
	}
	if got := b.post(t, confirmPage, map[string]string{"password": password}); got.header.Get("Location") != confirmPage {
		t.Errorf("confirming beside the form: %d %v", got.status, got.header)
	}
	if got := b.get(t, confirmPage); !strings.Contains(got.body, "send it again") {
		t.Errorf("after that: %s", got.body)
	}
	if got := b.post(t, apiKeysPage, nil); got.status == 403 {
		t.Errorf("the form again: %d %s", got.status, got.body)
	}
}

// Guessing at the confirmation ends as soon as at the sign-in. A thief of a session who does it keeps its member from signing
// in no more than a stranger who guesses at the sign-in keeps those from confirming who have signed in.
func TestAttemptsToConfirmAreLimited(t *testing.T) {
	p := newWorld(t).start(t, operatorToken)
	acme := p.tenant(t, "Acme")
	stolen, own := p.signedIn(t, acme, "owner"), p.signedIn(t, acme, "viewer")
	confirm := func(b *browser, password string) page {
		return b.post(t, confirmPage, map[string]string{"password": password})
	}
	attempts := 0
	for attempts < 20 && confirm(stolen, "wrong horse battery staple").status != 429 {
		attempts++
	}
	if got := confirm(stolen, password); attempts != 10 || got.status != 429 || got.header.Get("Retry-After") == "" {
		t.Errorf("after %d attempts: %d", attempts, got.status)
	}
	p.browser("192.0.2.99").signIn(t, ownerOf(acme), password)

	stranger := p.browser("192.0.2.7") // from where all of them come
	for range 25 {
		stranger.post(t, "/console/sign-in", map[string]string{"email": emailOf(acme, "viewer"), "password": "wrong horse battery staple"})
	}
	if got := confirm(own, password); got.status != 303 {
		t.Errorf("who has signed in confirms: %d", got.status)
	}
}
