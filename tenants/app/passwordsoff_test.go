package app_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/weirlog/weir/tenants/passkeytest"
)

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
