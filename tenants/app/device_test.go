package app_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

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
