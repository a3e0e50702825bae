package app_test

import (
	"fmt"
	"net/http"
	"regexp"
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

const securityPage = "/console/settings/security"

// policyForm is the security page's form, with its password setting.
func policyForm(passwords string) map[string]string {
	return map[string]string{"leaked_keys": "notify", "plain_http_keys": "flag", "passwords": passwords}
}

// byPasskey signs in with a passkey, in an unknown browser.
func (p *process) byPasskey(t *testing.T, d *passkeytest.Device) *browser {
	t.Helper()
	b := p.browser("198.51.100.70")
	if got := b.post(t, signInPasskey, d.Answer(t, passkeytest.Site, b.asked(t, signInPasskey))); got.status != 303 {
		t.Fatalf("sign in by passkey: %d %s", got.status, got.body)
	}
	return b
}

// Owners switch passwords off once one of them can sign in otherwise.
// From then on passwords are refused, the right one is audited with the
// reason, and passkeys work. The last way to sign in can't be removed.
// The operator's command allows passwords again.
func testPasswordsOff(t *testing.T, p *process) {
	acme := p.tenant(t, "Acme")
	b := p.signedIn(t, acme, "owner")
	p.add(t, acme.organization, "bob@off.example", "viewer")
	if got := b.post(t, securityPage, policyForm("off")); got.status != 422 || !strings.Contains(got.text(), "No owner of the organization can sign in without a password") {
		t.Fatalf("switched off while nobody could come in: %d %s", got.status, got.body)
	}
	laptop := b.register(t, "Laptop")
	if got := b.post(t, securityPage, policyForm("off")); got.status != 303 {
		t.Fatalf("switch off: %d %s", got.status, got.body)
	}
	if shown := b.get(t, securityPage).text(); !strings.Contains(shown, "1 of 2 members have a passkey") || !strings.Contains(shown, `value="off" selected`) {
		t.Errorf("the page: %s", shown)
	}
	for _, email := range []string{ownerOf(acme), "bob@off.example"} {
		if got := p.browser("192.0.2.61").signIn(t, email, password); got.status != 422 || !strings.Contains(got.body, "switched passwords off") {
			t.Errorf("%s with the right password: %d %s", email, got.status, got.body)
		}
		if got := p.browser("192.0.2.61").signIn(t, email, "wrong horse battery staple"); got.status != 422 || strings.Contains(got.body, "switched passwords off") {
			t.Errorf("%s with a wrong one: %d %s", email, got.status, got.body)
		}
	}
	if got := b.post(t, accountPage+"/password", map[string]string{"current_password": password, "password": "another horse battery staple"}); got.status != 409 {
		t.Errorf("another password: %d %s", got.status, got.body)
	}
	if got := b.post(t, confirmPage, map[string]string{"password": password}); got.status != 409 {
		t.Errorf("confirm by password: %d %s", got.status, got.body)
	}
	in := p.byPasskey(t, laptop)
	remove := regexp.MustCompile(`/console/settings/account/passkeys/[^/"]+/remove`).FindString(in.get(t, accountPage).body)
	if got := in.post(t, remove, nil); got.status != 409 || !strings.Contains(got.text(), "the only way in") {
		t.Errorf("the last passkey is removed: %d %s", got.status, got.body)
	}
	p.world.program(t).must(t, "organization", "allow-passwords", acme.organization)
	if got := p.browser("192.0.2.62").signIn(t, "bob@off.example", password); got.status != 303 {
		t.Errorf("allowed again: %d", got.status)
	}
	audited := p.must(t, 200, "GET", "/v1/audit-events?organization="+acme.organization+"&action=security_policy.set", "").text
	if strings.Count(audited, `"passwords_off":true`) != 2 { // after the first, before the second
		t.Errorf("the audit: %s", audited)
	}
}

// Where passwords are off, an invitation or a reset
// link signs its holder in, once, to add a passkey.
func testCodesLetInWherePasswordsAreOff(t *testing.T, p *process) {
	n := p.world.follow(t)
	acme := p.tenant(t, "Acme")
	b := p.signedIn(t, acme, "owner")
	b.register(t, "Laptop")
	bob := p.add(t, acme.organization, "bob@links.example", "viewer")
	b.post(t, securityPage, policyForm("off"))

	invited := codeOf(t, "weirinv", p.must(t, 201, "POST", "/v1/invitations",
		text(map[string]any{"organization": acme.organization, "email": "eve@links.example", "role": "viewer"})).text)
	reset := p.must(t, 201, "POST", "/v1/members/"+bob+"/reset-code", "").get("code")
	eve, bobs := p.browser("192.0.2.63"), p.browser("192.0.2.64")
	for name, in := range map[string]struct {
		b   *browser
		got page
	}{
		"invited": {eve, eve.post(t, "/console/join", map[string]string{"code": invited, "email": "eve@links.example", "name": "Eve"})},
		"reset":   {bobs, bobs.post(t, "/console/reset", map[string]string{"code": reset})},
	} {
		if in.got.status != 303 || in.got.header.Get("Location") != passkeysPage+"/new" {
			t.Fatalf("%s: %d %v %s", name, in.got.status, in.got.header, in.got.body)
		}
		phone := in.b.register(t, "Phone")
		in.b.signOut(t)
		p.byPasskey(t, phone)
	}
	if got := bobs.post(t, "/console/reset", map[string]string{"code": reset}); got.status != 422 {
		t.Errorf("the code again: %d", got.status)
	}
	if got := p.browser("192.0.2.65").signIn(t, "eve@links.example", ""); got.status != 422 {
		t.Errorf("no password: %d", got.status)
	}
	n.awaitLookup(t, b.Session(), nil)
}
