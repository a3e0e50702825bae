package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/descope/virtualwebauthn"

	"github.com/weirlog/weir/tenants/passkeytest"
)

const (
	passkeysPage  = accountPage + "/passkeys"
	signInPasskey = "/console/sign-in/passkey"
)

// asked returns the challenge that an address responds with.
func (b *browser) asked(t *testing.T, path string) string {
	t.Helper()
	got := b.post(t, path+"/options", nil)
	if got.status != http.StatusOK || got.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%s: %d %s", path, got.status, got.body)
	}
	return got.body
}

// register adds a new device's passkey to the signed-in member.
func (b *browser) register(t *testing.T, name string) *passkeytest.Device {
	t.Helper()
	d, answer := passkeytest.New(t, b.asked(t, passkeysPage))
	if got := b.post(t, passkeysPage, map[string]string{"name": name, "credential": answer}); got.status != 303 {
		t.Fatalf("register %s: %d %s", name, got.status, got.body)
	}
	return d
}

// passkeyOwner returns a browser with an owner's
// session, and the owner's passkey.
func (p *process) passkeyOwner(t *testing.T) (*browser, *passkeytest.Device) {
	t.Helper()
	b := p.signedIn(t, p.tenant(t, "Acme"), "owner")
	return b, b.register(t, "Laptop")
}

// A reset removes passkeys: somebody with the password
// could have added one. The member and the audit see that.
func testResetRemovesPasskeys(t *testing.T, p *process) {
	n := p.world.follow(t)
	b, laptop := p.passkeyOwner(t)
	key, holder := b.register(t, "Key"), n.awaitLookup(t, b.Session(), nil)
	code := p.must(t, 201, "POST", "/v1/members/"+holder.Member+"/reset-code", "").get("code")
	if shown := p.browser("192.0.2.1").get(t, "/console/reset").body; !strings.Contains(shown, "passkeys are removed") {
		t.Errorf("the page of the reset: %s", shown)
	}
	other := p.browser("192.0.2.1")
	if got := other.post(t, "/console/reset", map[string]string{"code": code, "password": "battery staple horse"}); got.status != 303 {
		t.Fatalf("reset: %d %s", got.status, got.body)
	}
	if shown := other.get(t, "/console/sign-in").body; !strings.Contains(shown, "old passkeys no longer work") {
		t.Errorf("after that: %s", shown)
	}
	for _, d := range []*passkeytest.Device{laptop, key} {
		form := d.Answer(t, passkeytest.Site, other.asked(t, signInPasskey))
		if got := other.post(t, signInPasskey, form); got.status != 422 || other.Session() != "" {
			t.Errorf("a passkey of before: %d", got.status)
		}
	}
	removed := p.must(t, 200, "GET", "/v1/audit-events?organization="+holder.Organization+"&action=passkey.removed", "").items(t)
	if len(removed) != 2 {
		t.Errorf("the audit has %v", removed)
	}
}

// A count of uses that does not grow suggests a copy: the
// passkey is refused from then on, and its member reads why.
func testCopiesOfPasskeysAreFound(t *testing.T, p *process) {
	b, laptop := p.passkeyOwner(t)
	copied := *laptop
	other := p.browser("198.51.100.9")
	if got := other.post(t, signInPasskey, laptop.Answer(t, passkeytest.Site, other.asked(t, signInPasskey))); got.status != 303 {
		t.Fatalf("sign in: %d", got.status)
	}
	thief := p.browser("203.0.113.9")
	if got := thief.post(t, signInPasskey, copied.Answer(t, passkeytest.Site, thief.asked(t, signInPasskey))); got.status != 422 || !strings.Contains(got.body, "may be a copy") || thief.Session() != "" {
		t.Errorf("sign in by a copy: %d %s", got.status, got.body)
	}
	again := p.browser("198.51.100.9")
	if got := again.post(t, signInPasskey, laptop.Answer(t, passkeytest.Site, again.asked(t, signInPasskey))); got.status != 422 {
		t.Errorf("sign in by either: %d", got.status)
	}
	if listed := b.get(t, accountPage).body; !strings.Contains(listed, "there may be a copy") {
		t.Errorf("the list: %s", listed)
	}
}

// A device with a passkey here is refused with that reason:
// one passkey is not registered twice, nor for somebody else.
func testPasskeysAreUnique(t *testing.T, p *process) {
	n := p.world.follow(t)
	b, laptop := p.passkeyOwner(t)
	question := b.asked(t, passkeysPage)
	options, err := virtualwebauthn.ParseAttestationOptions(question)
	if err != nil || !laptop.Credential.IsExcludedForAttestation(*options) {
		t.Errorf("asked %s: %v", question, err)
	}
	form := map[string]string{"name": "", "credential": virtualwebauthn.CreateAttestationResponse(passkeytest.Site, laptop.Authenticator, laptop.Credential, *options)}
	if got := b.post(t, passkeysPage, form); got.status != 422 || !strings.Contains(got.body, `id="fault-name"`) {
		t.Errorf("without a name: %d %s", got.status, got.body)
	}
	form["name"] = "again"
	if got := b.post(t, passkeysPage, form); got.status != 422 {
		t.Errorf("the same one again: %d %s", got.status, got.body)
	}
	n.awaitLookup(t, b.Session(), nil)
}

// Requests for challenges count against their own network
// alone: not another network's, nor that of passwords in their
// own. Guessed passwords do not count against challenges.
func testWhoAsksStopsNobodyElse(t *testing.T, p *process) {
	acme := p.tenant(t, "Acme")
	laptop := p.signedIn(t, acme, "owner").register(t, "Laptop")
	stranger := p.browser("192.0.2.60")
	for asked := 0; stranger.post(t, signInPasskey+"/options", nil).status != 429; asked++ {
		if asked > 30 {
			t.Fatal("there is no end to the questions")
		}
	}
	if got := stranger.get(t, oidcPage); got.status != 429 {
		t.Errorf("by the provider, who has no more questions: %d", got.status)
	}
	other := p.browser("192.0.2.61")
	if got := other.post(t, signInPasskey, laptop.Answer(t, passkeytest.Site, other.asked(t, signInPasskey))); got.status != 303 {
		t.Errorf("by passkey, from another network: %d", got.status)
	}
	if got := p.browser("192.0.2.61").get(t, oidcPage); got.status != 303 {
		t.Errorf("by the provider, from another network: %d", got.status)
	}
	if got := p.browser("192.0.2.60").signIn(t, ownerOf(acme), password); got.status != 303 {
		t.Errorf("by password, from the same network: %d", got.status)
	}
	for guessed := 0; p.browser("192.0.2.62").signIn(t, fmt.Sprintf("%d@example.com", guessed), "wrong horse battery staple").status != 429; guessed++ {
		if guessed > 30 {
			t.Fatal("there is no end to the guesses")
		}
	}
	if got := p.browser("192.0.2.62").post(t, signInPasskey+"/options", nil); got.status != 200 {
		t.Errorf("a question, where passwords were guessed: %d", got.status)
	}
}
