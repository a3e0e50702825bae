package app_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/passkeytest"
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

const confirmPage = "/console/confirm"

// A member who was removed, or signed out elsewhere, during an outage
// of the broker is redirected to the sign-in: the cookie still counts
// here, but that is neither a server error nor an endless redirect.
func testEndedBeforeThatIsConsumed(t *testing.T, p *process, clock *watch, acme tenant) (during func(*testing.T)) {
	removed, removedID := p.signedInEverywhere(t, acme, "ada@example.com", "developer")
	renewed, renewedID := p.signedInEverywhere(t, acme, "bob@example.com", "developer")
	confirmed, confirmedID := p.signedInEverywhere(t, acme, "eve@example.com", "developer")
	adding, addingID := p.signedInEverywhere(t, acme, "mal@example.com", "developer")
	_, made := passkeytest.New(t, adding.asked(t, passkeysPage))
	return func(t *testing.T) {
		p.must(t, 200, "POST", "/v1/members/"+removedID+"/remove", "")
		for _, member := range []string{renewedID, confirmedID, addingID} {
			session := p.must(t, 200, "GET", "/v1/sessions?member="+member, "").items(t)[0]["id"].(string)
			p.must(t, 200, "POST", "/v1/sessions/"+session+"/revoke", `{"reason":"test"}`)
		}
		for what, act := range map[string]func(b *browser) page{
			"page":         func(b *browser) page { return b.get(t, projectsPage) },
			"confirmation": func(b *browser) page { return b.post(t, confirmPage, map[string]string{"password": password}) },
			"new password": func(b *browser) page {
				return b.post(t, accountPage+"/password", map[string]string{"current_password": password, "password": "battery staple horse"})
			},
			"question for a passkey": func(b *browser) page { return b.post(t, accountPage+"/passkeys/options", nil) },
			"answer for a passkey":   func(b *browser) page { return b.post(t, confirmPage+"/passkey/options", nil) },
		} {
			b := p.browser("192.0.2.1")
			b.Cookies = maps.Clone(removed.Cookies)
			b.isSignedOut(t, "a removed member's "+what, act(b))
		}
		confirmed.isSignedOut(t, "a confirmation", confirmed.post(t, confirmPage, map[string]string{"password": password}))
		adding.isSignedOut(t, "a new passkey", adding.post(t, passkeysPage, map[string]string{"name": "mine", "credential": made}))
		if kept := p.world.dump(t); strings.Contains(kept, "passkey_registered") {
			t.Error("a session that has ended leaves a passkey behind")
		}
		clock.pass(tenants.RenewAfter)
		renewed.isSignedOut(t, "a renewal", renewed.navigate(t, identity.RenewPath+"?to="+projectsPage))
	}
}

// A member who lost their role, or was removed, during an outage of the
// broker issues and changes nothing by a session that still has it.
func testRoleLostBeforeThatIsConsumed(t *testing.T, p *process, acme tenant) (during func(*testing.T)) {
	demoted, demotedID := p.signedInEverywhere(t, acme, "amy@example.com", "admin")
	lesser, lesserID := p.signedInEverywhere(t, acme, "ben@example.com", "owner")
	removed, removedID := p.signedInEverywhere(t, acme, "eva@example.com", "admin")
	return func(t *testing.T) {
		p.must(t, 200, "PATCH", "/v1/members/"+demotedID, `{"role":"viewer"}`)
		p.must(t, 200, "PATCH", "/v1/members/"+lesserID, `{"role":"admin"}`)
		p.must(t, 200, "POST", "/v1/members/"+removedID+"/remove", "")
		for who, b := range map[string]*browser{"demoted": demoted, "removed": removed} {
			for what, got := range b.tryChanges(t, acme) {
				if (who == "demoted") != (got.status == http.StatusForbidden) || (who == "removed") != (got.header.Get("Location") == identity.SignInPath) {
					t.Errorf("%s, %s: %d %s", who, what, got.status, got.header.Get("Location"))
				}
			}
		}
		token := func(scope string) int {
			return lesser.post(t, "/console/settings/service-tokens", map[string]string{"name": "t " + scope, "scopes": scope}).status
		}
		if admin, billing := token(tenants.ScopeTenantsAdmin), token(tenants.ScopeBillingRead); admin != 403 || billing != 201 {
			t.Errorf("who is no owner any more gives a token the scope of owners: %d, that of admins: %d", admin, billing)
		}
	}
}

// tryChanges requests one change of each kind that a viewer may not make.
func (b *browser) tryChanges(t *testing.T, of tenant) map[string]page {
	t.Helper()
	key, tokens := apiKeysPage+"/"+of.key, "/console/settings/service-tokens"
	return map[string]page{
		"rotate a key":     b.post(t, key+"/rotate", map[string]string{"overlap_seconds": "0"}),
		"change a key":     b.post(t, key+"/edit", map[string]string{"name": "mine"}),
		"revoke a key":     b.post(t, key+"/revoke", nil),
		"issue a key":      b.post(t, apiKeysPage, map[string]string{"name": "new", "project": of.project, "environment": "dev", "ends": "never"}),
		"issue a token":    b.post(t, tokens, map[string]string{"name": "new", "scopes": tenants.ScopeBillingRead}),
		"revoke a token":   b.post(t, tokens+"/"+of.tokenID+"/revoke", nil),
		"create a project": b.post(t, projectsPage, map[string]string{"name": "New"}),
		"rename a project": b.post(t, projectsPage+"/"+of.project, map[string]string{"name": "Other"}),
		"rename all":       b.post(t, "/console/settings/organization", map[string]string{"name": "Other"}),
		"set the policy": b.post(t, "/console/settings/security",
			map[string]string{"leaked_keys": "notify", "plain_http_keys": "flag"}),
	}
}

// signedInEverywhere returns a browser with the session
// of a new member, once that is consumed here.
func (p *process) signedInEverywhere(t *testing.T, of tenant, email, role string) (*browser, string) {
	t.Helper()
	id, b := p.add(t, of.organization, email, role), p.browser("192.0.2.1")
	b.signIn(t, email, password)
	testenv.Eventually(t, func() error {
		if got := b.get(t, projectsPage); got.status != http.StatusOK {
			return fmt.Errorf("signed in, but the page answers %d", got.status)
		}
		return nil
	})
	return b, id
}

func (b *browser) isSignedOut(t *testing.T, what string, got page) {
	t.Helper()
	if got.status != http.StatusSeeOther || got.header.Get("Location") != identity.SignInPath || b.Session() != "" {
		t.Errorf("%s: %d to %q, signed in: %t", what, got.status, got.header.Get("Location"), b.Session() != "")
	}
	if again := b.navigate(t, identity.SignInPath); again.status != http.StatusOK {
		t.Errorf("%s: then the sign-in answers %d", what, again.status)
	}
}

// held is a body that is interrupted by something.
type held struct {
	happens func()
	body    *strings.Reader
}

func (h *held) Read(p []byte) (int, error) {
	if h.happens != nil {
		h.happens()
		h.happens = nil
	}
	return h.body.Read(p)
}

// send sends a request whose body arrives after something has happened.
func (p *process) send(t *testing.T, path, kind, body string, h header, happens func()) *httptest.ResponseRecorder {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, &held{happens, strings.NewReader(body)})
	request.Header.Set("Content-Type", kind)
	request.Header.Set(h.name, h.value)
	answer := httptest.NewRecorder()
	p.Handler().ServeHTTP(answer, request)
	return answer
}

// A token or a session that ends during a request does not execute it.
func testHeldRequestsEndWithTheirCredential(t *testing.T, p *process) {
	acme := p.tenant(t, "Acme")
	p.add(t, acme.organization, "ada@held.example", "owner")
	token := p.must(t, 201, "POST", "/v1/service-tokens",
		text(map[string]any{"organization": acme.organization, "name": "n", "scopes": []string{"tenants:admin"}}))
	answer := p.send(t, "/v1/projects", "application/json", text(map[string]any{"organization": acme.organization, "name": "late"}),
		header{"Authorization", "Bearer " + token.get("token")}, func() {
			p.must(t, 200, "POST", "/v1/service-tokens/"+token.get("id")+"/revoke", "")
		})
	if answer.Code != http.StatusUnauthorized {
		t.Errorf("a token that is revoked meanwhile: %d %s", answer.Code, answer.Body)
	}
	mallory := p.add(t, acme.organization, "mallory@held.example", "admin")
	b := p.browser("192.0.2.90")
	b.signIn(t, "mallory@held.example", password)
	answer = p.send(t, "/console/settings/service-tokens", "application/x-www-form-urlencoded", "name=n&scopes=billing%3Aread",
		header{"Cookie", identity.SessionCookie + "=" + b.Session()}, func() {
			p.must(t, 200, "POST", "/v1/members/"+mallory+"/remove", "")
		})
	if answer.Code != http.StatusSeeOther || !strings.HasPrefix(answer.Header().Get("Location"), identity.SignInPath) {
		t.Errorf("a member who is removed meanwhile: %d %s", answer.Code, answer.Body)
	}
}

const deviceCookie = "__Host-weir-device"

// guess tries to sign in as a member from
// ever new networks until that is refused.
func (p *process) guess(t *testing.T, email string) {
	t.Helper()
	for i := range 11 {
		got := p.browser(fmt.Sprintf("203.0.113.%d", i+1)).signIn(t, email, "wrong horse battery staple")
		if got.status == http.StatusTooManyRequests {
			return
		}
	}
	t.Fatalf("anybody may guess at %s without end", email)
}

// signOut ends a browser's session. The browser stays known.
func (b *browser) signOut(t *testing.T) {
	t.Helper()
	if got := b.post(t, "/console/sign-out", nil); got.status != 303 {
		t.Fatalf("sign out: %d %s", got.status, got.body)
	}
}

// Wrong passwords from unknown devices slow only those:
// a known browser signs in again, even in the network of
// the guesses. Its attempts have a limit of their own.
func testGuessesDoNotLockOutAKnownDevice(t *testing.T, p *process) {
	acme := p.tenant(t, "Acme")
	b := p.signedIn(t, acme, "owner")
	b.signOut(t)
	cookie := b.Cookies[deviceCookie]
	if cookie == nil || !cookie.Secure || !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || cookie.Path != "/" || cookie.Domain != "" ||
		!regexp.MustCompile(`^weirdev_[0-9a-f]{48}$`).MatchString(cookie.Value) {
		t.Fatalf("the cookie is %+v", cookie)
	}
	p.guess(t, ownerOf(acme))
	for i := range 25 { // the network of the device has no attempts left either
		p.browser(b.Address).signIn(t, fmt.Sprintf("user%d@example.com", i), "wrong horse battery staple")
	}
	if got := p.browser(b.Address).signIn(t, "other@example.com", password); got.status != 429 {
		t.Fatalf("an unknown device in that network: %d", got.status)
	}
	if got := b.signIn(t, ownerOf(acme), password); got.status != 303 || b.Cookies[deviceCookie].Value == cookie.Value {
		t.Fatalf("the known device: %d %s; its secret is another one: %t", got.status, got.body, b.Cookies[deviceCookie].Value != cookie.Value)
	}
	b.signOut(t)
	allowed := 0
	for got := (page{status: 422}); got.status == 422; allowed++ {
		got = b.signIn(t, ownerOf(acme), "wrong horse battery staple")
	}
	if allowed != 11 {
		t.Errorf("%d attempts from the known device", allowed-1)
	}
	if strings.Contains(p.world.log.String(), cookie.Value) || strings.Contains(p.world.log.String(), ownerOf(acme)) {
		t.Error("the secret of the device, or the address that was tried, is logged")
	}
}

// A device is one member's: for another address,
// made up or of a removed member, it is unknown.
func testADeviceIsItsMembersAlone(t *testing.T, p *process) {
	acme := p.tenant(t, "Acme")
	owner, mallory := p.signedIn(t, acme, "owner"), p.signedIn(t, acme, "viewer")
	mallory.signOut(t)
	p.guess(t, ownerOf(acme))
	forged := p.browser("192.0.2.30")
	forged.Cookies[deviceCookie] = &http.Cookie{Name: deviceCookie, Value: "weirdev_" + strings.Repeat("0", 48)}
	stolen := p.browser("192.0.2.31")
	stolen.Cookies[deviceCookie] = &http.Cookie{Name: deviceCookie, Value: mallory.Cookies[deviceCookie].Value}
	for name, b := range map[string]*browser{"another member's device": mallory, "a device that was made up": forged, "a copied one": stolen} {
		if got := b.signIn(t, ownerOf(acme), password); got.status != 429 {
			t.Errorf("%s: %d", name, got.status)
		}
	}
	p.guess(t, "nobody@example.com")
	known, unknown := stolen.signIn(t, ownerOf(acme), "x"), stolen.signIn(t, "nobody@example.com", "x")
	wait := regexp.MustCompile(`Wait \d+ seconds`)
	same := strings.ReplaceAll(wait.ReplaceAllString(known.body, ""), ownerOf(acme), "nobody@example.com") == wait.ReplaceAllString(unknown.body, "")
	if known.status != unknown.status || !same {
		t.Errorf("the answers tell who is a member: %d %s\n%d %s", known.status, known.body, unknown.status, unknown.body)
	}
	owner.signOut(t)
	if got := owner.signIn(t, ownerOf(acme), password); got.status != 303 {
		t.Errorf("the owner's own: %d", got.status)
	}
}

// Several members may share a browser, which knows each of them.
func testABrowserOfSeveralMembers(t *testing.T, p *process) {
	acme := p.tenant(t, "Acme")
	b := p.signedIn(t, acme, "owner")
	p.add(t, acme.organization, "bob@browser.example", "viewer")
	if got := b.signIn(t, "bob@browser.example", password); got.status != 303 {
		t.Fatalf("bob: %d", got.status)
	}
	b.signOut(t)
	for _, email := range []string{ownerOf(acme), "bob@browser.example"} {
		p.guess(t, email)
		if got := b.signIn(t, email, password); got.status != 303 {
			t.Errorf("%s: %d", email, got.status)
		}
		b.signOut(t)
	}
	if n := strings.Count(b.Cookies[deviceCookie].Value, "weirdev_"); n != 2 {
		t.Errorf("the cookie holds %d secrets", n)
	}
}

// What ends sessions elsewhere makes the browsers there
// unknown, and removed members are known nowhere.
func testDevicesAreForgotten(t *testing.T, p *process) {
	const other = "another horse battery staple"
	for name, test := range map[string]struct {
		does     func(t *testing.T, b *browser, id string)
		email    string
		password string
		first    int // how the browser that did it fares
	}{
		"another password": {func(t *testing.T, b *browser, _ string) {
			b.post(t, accountPage+"/password", map[string]string{"current_password": password, "password": other})
		}, "ada@devices.example", other, 303},
		"signed out everywhere": {func(t *testing.T, b *browser, _ string) {
			b.post(t, accountPage+"/sessions/end-others", nil)
		}, "bob@devices.example", password, 303},
		"a reset": {func(t *testing.T, _ *browser, id string) {
			code := p.must(t, 201, "POST", "/v1/members/"+id+"/reset-code", "").get("code")
			p.browser("192.0.2.40").post(t, "/console/reset", map[string]string{"code": code, "password": other})
		}, "eve@devices.example", other, 429},
	} {
		t.Run(name, func(t *testing.T) {
			acme := p.tenant(t, "Acme")
			id := p.add(t, acme.organization, test.email, "owner")
			first, second := p.browser("192.0.2.23"), p.browser("192.0.2.24")
			for _, b := range []*browser{first, second} {
				if got := b.signIn(t, test.email, password); got.status != 303 {
					t.Fatalf("sign in: %d", got.status)
				}
			}
			test.does(t, first, id)
			p.guess(t, test.email)
			if got := second.signIn(t, test.email, test.password); got.status != 429 {
				t.Errorf("the other browser is still known: %d", got.status)
			}
			if got := first.signIn(t, test.email, test.password); got.status != test.first {
				t.Errorf("the browser that did it: %d, want %d", got.status, test.first)
			}
		})
	}
}

// failuresReported are the lines of the audit about failed
// sign-ins of an organization's members, oldest first.
func (p *process) failuresReported(t *testing.T, organization string) []map[string]any {
	t.Helper()
	return p.must(t, 200, "GET", "/v1/audit-events?organization="+organization+"&action=member.sign_ins_failed", "").items(t)
}

// awaitFailures waits for so many lines, and returns the newest's failures.
func (p *process) awaitFailures(t *testing.T, organization string, lines int) map[string]any {
	t.Helper()
	var reported []map[string]any
	testenv.Eventually(t, func() error {
		if reported = p.failuresReported(t, organization); len(reported) != lines {
			return fmt.Errorf("%d lines", len(reported))
		}
		return nil
	})
	for _, line := range reported { // whatever the order of the list
		if after, ok := line["after"].(map[string]any); ok && (lines == 1 || after["refused"] != nil) {
			return after
		}
	}
	t.Fatalf("the lines are %v", reported)
	return nil
}

// The first failure to sign in as a member is in the organization's audit,
// and the first refused one, the others as one line an hour with their
// number: nobody can fill it. The log has each, without the address.
func TestFailuresToSignInAreAudited(t *testing.T) {
	w := newWorld(t)
	clock := &watch{}
	w.clock = clock.now
	p := w.start(t, operatorToken)
	acme, other := p.tenant(t, "Acme"), p.tenant(t, "Other")
	id := p.add(t, acme.organization, "ada@example.com", "owner")

	p.browser("203.0.113.200").signIn(t, "ADA@example.com", "wrong horse battery staple")
	first := p.awaitFailures(t, acme.organization, 1)
	if first["member"] != id || first["failed"] != 1.0 || text(first["networks"]) != `["203.0.113.200/32"]` {
		t.Errorf("the first: %v", first)
	}
	p.guess(t, "ada@example.com") // nine more, and a refused one
	p.guess(t, "nobody@example.com")
	testenv.Eventually(t, func() error {
		if strings.Count(w.log.String(), "a sign-in failed") != 20 {
			return errors.New("not all is logged")
		}
		return nil
	})
	locked := p.awaitFailures(t, acme.organization, 2)
	if locked["member"] != id || locked["failed"] != 9.0 || locked["refused"] != 1.0 || len(locked["networks"].([]any)) != 5 {
		t.Errorf("the first that is refused: %v", locked)
	}
	p.guess(t, "ada@example.com")
	if reported := p.failuresReported(t, acme.organization); len(reported) != 2 {
		t.Errorf("within the hour: %v", reported)
	}
	clock.pass(time.Hour + time.Minute)
	p.awaitFailures(t, acme.organization, 3)
	refused := 0.0
	for _, line := range p.failuresReported(t, acme.organization) {
		if n, ok := line["after"].(map[string]any)["refused"].(float64); ok {
			refused += n
		}
	}
	if refused != 2 {
		t.Errorf("after the hour %v refused attempts are reported, want 2", refused)
	}
	if reported := p.failuresReported(t, other.organization); len(reported) != 0 {
		t.Errorf("another organization is reported %v", reported)
	}
	for _, hidden := range []string{"ada@example.com", "wrong horse"} {
		if strings.Contains(strings.ToLower(w.log.String()), hidden) {
			t.Errorf("%q is logged", hidden)
		}
	}
}
