package app_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// codeOf is the code in a page, a text or an answer.
func codeOf(t *testing.T, kind, in string) string {
	t.Helper()
	code := regexp.MustCompile(kind + `_[0-9a-f]{48}`).FindString(in)
	if code == "" {
		t.Fatalf("no code of %s: %s", kind, in)
	}
	return code
}

func registration(code, email string) map[string]string {
	return map[string]string{"code": code, "email": email, "name": "Bob", "password": password, "organization": "Acme"}
}

// The state of a code is shown only to its holder. Only
// the invited learn that an address is taken elsewhere.
func testCodesDiscloseToTheirHolderOnly(t *testing.T, p *process) {
	acme, other := p.tenant(t, "Acme"), p.tenant(t, "Other")
	p.add(t, other.organization, "taken@codes.example", "viewer")
	made := p.must(t, 201, "POST", "/v1/invitations", text(invitation(acme.organization, "bob@codes.example", "viewer")))
	resent := p.must(t, 200, "POST", "/v1/invitations/"+made.get("id")+"/resend", "")
	revoked := p.must(t, 201, "POST", "/v1/invitations", text(invitation(acme.organization, "eve@codes.example", "viewer")))
	p.must(t, 200, "POST", "/v1/invitations/"+revoked.get("id")+"/revoke", "")
	taken := p.must(t, 201, "POST", "/v1/invitations", text(invitation(acme.organization, "taken@codes.example", "viewer")))
	b := p.browser("192.0.2.40")
	unknown := "weirinv_" + strings.Repeat("0", 48)
	nothing := b.post(t, "/console/join", registration(unknown, "bob@codes.example"))
	for name, test := range map[string]struct{ code, email, want string }{
		"replaced": {made.get("code"), "bob@codes.example", "This code is not valid."},
		"revoked":  {revoked.get("code"), "eve@codes.example", "was taken back"},
		"taken":    {taken.get("code"), "taken@codes.example", "in another organization"},
		"good":     {resent.get("code"), "nobody@codes.example", "is not the address that was invited"},
	} {
		got := b.post(t, "/console/join", registration(test.code, test.email))
		if got.status != 422 || !strings.Contains(got.text(), test.want) {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
		if name == "replaced" && strings.ReplaceAll(got.body, test.code, unknown) != nothing.body {
			t.Errorf("a code that was replaced is told from one that never was: %s", got.body)
		}
	}
	if got := p.must(t, 200, "GET", "/v1/invitations?organization="+acme.organization, "").items(t)[2]; got["state"] != "open" {
		t.Errorf("the invitation of a taken address is %v", got)
	}
}

// Guesses of codes are limited.
func testAttemptsWithCodesAreLimited(t *testing.T, p *process) {
	for i, page := range []string{"/console/join", "/console/welcome", "/console/reset"} {
		b := p.browser(fmt.Sprintf("203.0.114.%d", i))
		for n := range 21 {
			got := b.post(t, page, registration(fmt.Sprintf("weirinv_%048d", n), "bob@example.com"))
			if want := map[bool]int{true: 429, false: 422}[n == 20]; got.status != want {
				t.Fatalf("%s: attempt %d: %d, want %d", page, n, got.status, want)
			}
		}
	}
}

// An installation without members prints a link, by which one
// person becomes the first owner; then there is no other.
func TestFirstOwner(t *testing.T) {
	w := newWorld(t)
	w.output = &bytes.Buffer{}
	w.start(t, operatorToken).stop()
	void := codeOf(t, "weirown", w.output.String())
	w.output.Reset()
	p := w.start(t, operatorToken)
	printed := w.output.String()
	code := codeOf(t, "weirown", printed)
	if !strings.Contains(printed, "https://weir.example/console/welcome#"+code) || code == void {
		t.Fatalf("printed: %s", printed)
	}
	b := p.browser("192.0.2.60")
	if got := b.post(t, "/console/welcome", registration(void, "ada@example.com")); got.status != 422 || !strings.Contains(got.body, `id="fault-code"`) {
		t.Errorf("the link of before: %d %s", got.status, got.body)
	}
	if got := b.post(t, "/console/welcome", map[string]string{"code": code}); got.status != 422 ||
		strings.Count(got.body, `class="fault"`) != 4 || strings.Contains(got.body, `id="fault-code"`) {
		t.Errorf("nothing but the code: %d %s", got.status, got.body)
	}
	if got := b.post(t, "/console/welcome", registration(code, "Ada@Example.com")); got.status != 303 || b.Session() == "" {
		t.Fatalf("welcome: %d %s", got.status, got.body)
	}
	if got := b.get(t, membersPage); got.status != 200 || !strings.Contains(got.body, "ada@example.com") || !strings.Contains(got.body, ">owner<") {
		t.Errorf("the members: %d %s", got.status, got.body)
	}
	if got := p.browser("192.0.2.61").post(t, "/console/welcome", registration(code, "eve@example.com")); got.status != 422 {
		t.Errorf("the link again: %d %s", got.status, got.body)
	}
	if strings.Contains(w.log.String()+w.dump(t), code[8:]) {
		t.Error("the code is kept or logged")
	}
	p.stop()
	w.output.Reset()
	w.start(t, operatorToken)
	if w.output.Len() > 0 {
		t.Errorf("with a member it prints %s", w.output)
	}
}

// A link for the first owner is void as soon as there is any member.
func testOwnerLinkEndsWithTheFirstMember(t *testing.T, p *process) {
	code := codeOf(t, "weirown", p.world.output.String())
	p.add(t, p.tenant(t, "Acme").organization, "ada@first.example", "viewer")
	if got := p.browser("192.0.2.60").post(t, "/console/welcome", registration(code, "eve@example.com")); got.status != 422 {
		t.Errorf("welcome: %d %s", got.status, got.body)
	}
}

// So is a code issued by an operator's token, until that is revoked.
func testCodesGoWithTheOperator(t *testing.T, p *process) {
	acme := p.tenant(t, "Acme")
	bob := p.add(t, acme.organization, "bob@operator.example", "owner")
	token := p.must(t, 201, "POST", "/v1/service-tokens", text(map[string]any{"organization": "*", "name": "second", "scopes": []string{"tenants:admin"}}))
	ask := func(path, body string) string {
		got := p.call(t, token.get("token"), "POST", path, body)
		if got.status != 201 {
			t.Fatalf("%s: %d %s", path, got.status, got.text)
		}
		return got.get("code")
	}
	kept := ask("/v1/invitations", text(invitation(acme.organization, "kept@operator.example", "owner")))
	invited, code := ask("/v1/invitations", text(invitation(acme.organization, "new@operator.example", "owner"))), ask("/v1/members/"+bob+"/reset-code", "")
	if got := p.browser("192.0.2.90").post(t, "/console/join", registration(kept, "kept@operator.example")); got.status != 303 {
		t.Fatalf("joining as owner: %d %s", got.status, got.body)
	}
	p.must(t, 200, "POST", "/v1/service-tokens/"+token.get("id")+"/revoke", "")
	reset := p.browser("192.0.2.91").post(t, "/console/reset", map[string]string{"code": code, "password": "battery staple horse"})
	if reset.status != 422 || !strings.Contains(reset.body, "taken back") {
		t.Errorf("whose token was revoked becomes a member: %d", reset.status)
	}
	join := p.browser("192.0.2.92").post(t, "/console/join", registration(invited, "new@operator.example"))
	if join.status != 422 || !strings.Contains(join.body, "taken back") {
		t.Errorf("whose token was revoked joins: %d", join.status)
	}
}

// A code has its issuer's present rights: they may have kept it.
func testCodesGoWithTheirIssuer(t *testing.T, p *process) {
	acme := p.tenant(t, "Acme")
	p.add(t, acme.organization, "ada@issuer.example", "owner")
	bob := p.add(t, acme.organization, "bob@issuer.example", "developer")
	mallory := p.add(t, acme.organization, "mallory@issuer.example", "admin")
	admin := p.browser("192.0.2.80")
	admin.signIn(t, "mallory@issuer.example", password)
	made := p.must(t, 201, "POST", "/v1/invitations", text(invitation(acme.organization, "new@issuer.example", "admin")))
	id := made.get("id")
	invited := codeOf(t, "weirinv", admin.post(t, membersPage+"/invitations/"+id+"/resend", nil).body)
	code := codeOf(t, "weirpwd", admin.post(t, membersPage+"/"+bob+"/reset", nil).body)
	reset := func() page {
		return p.browser("192.0.2.81").post(t, "/console/reset", map[string]string{"code": code, "password": "battery staple horse"})
	}
	p.must(t, 200, "PATCH", "/v1/members/"+bob, `{"role":"owner"}`)
	if got := reset(); got.status != 422 || !strings.Contains(got.body, "taken back") {
		t.Errorf("an admin becomes the member who became owner: %d", got.status)
	}
	p.must(t, 200, "PATCH", "/v1/members/"+bob, `{"role":"viewer"}`)
	p.must(t, 200, "POST", "/v1/members/"+mallory+"/remove", "")
	if got := reset(); got.status != 422 || !strings.Contains(got.body, "taken back") {
		t.Errorf("who was removed becomes another member: %d", got.status)
	}
	if got := p.browser("192.0.2.82").post(t, "/console/join", registration(invited, "new@issuer.example")); got.status != 422 {
		t.Errorf("who was removed comes back by an invitation sent again: %d", got.status)
	}
}
