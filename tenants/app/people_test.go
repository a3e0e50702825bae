package app_test

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
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

// password is every member's in every test.
const password = "correct horse battery staple"

func member(organization, email, role string) map[string]any {
	return map[string]any{"organization": organization, "email": email, "name": "Ada", "role": role, "password": password}
}

// A member is added with one spelling of the address, which is unique
// in the installation; the answer does not repeat the password.
func testMembers(t *testing.T, p *process) {
	acme, other := p.tenant(t, "Acme"), p.tenant(t, "Other")
	added := p.must(t, 201, "POST", "/v1/members", text(member(acme.organization, " Ada@Members.EXAMPLE ", "owner")), header{"Idempotency-Key", "one"})
	expect(t, added, map[string]any{
		"id": regexp.MustCompile(`^mem_[0-9a-f]{32}$`), "organization": acme.organization, "email": "ada@members.example", "email_verified": false,
		"name": "Ada", "role": "owner", "created_at": utc, "removed_at": nil,
	})
	again := p.must(t, 201, "POST", "/v1/members", text(member(acme.organization, "ada@members.example", "owner")), header{"Idempotency-Key", "one"})
	if again.text != added.text {
		t.Errorf("the same request again: got %s, want %s", again.text, added.text)
	}
	for _, organization := range []string{acme.organization, other.organization} {
		got := p.call(t, operatorToken, "POST", "/v1/members", text(member(organization, "ADA@members.example", "viewer")))
		if got.status != 409 || got.get("code") != "conflict" {
			t.Errorf("the address again: got %d %s", got.status, got.text)
		}
	}
	got := p.call(t, operatorToken, "POST", "/v1/members", `{"password":"short"}`)
	if pointers := pointersOf(got); !slices.Equal(pointers, []string{"/organization", "/email", "/name", "/role", "/password"}) {
		t.Errorf("pointers %q: %s", pointers, got.text)
	}
	for _, secret := range []string{password, "argon2id", `"short"`} {
		if strings.Contains(p.world.log.String(), secret) || strings.Contains(added.text+again.text+got.text, secret) {
			t.Errorf("%q is logged or answered", secret)
		}
	}
}

// add adds a member and returns the id.
func (p *process) add(t *testing.T, organization, email, role string) string {
	t.Helper()
	return p.must(t, 201, "POST", "/v1/members", text(member(organization, email, role))).get("id")
}

// A removed member is signed out at once, in every service
// and browser, can't sign in again, and frees the address.
func testRemovedMembersAreOut(t *testing.T, p *process) {
	n := p.world.follow(t)
	acme := p.tenant(t, "Acme")
	id := p.add(t, acme.organization, "ada@removed.example", "developer")
	p.add(t, acme.organization, "bob@removed.example", "owner")
	laptop, phone, other := p.browser("192.0.2.1"), p.browser("192.0.2.2"), p.browser("192.0.2.3")
	laptop.signIn(t, "ada@removed.example", password)
	phone.signIn(t, "ada@removed.example", password)
	other.signIn(t, "bob@removed.example", password)
	removed := p.must(t, 200, "POST", "/v1/members/"+id+"/remove", "")
	if removed.get("removed_at") == "" {
		t.Errorf("removed: %s", removed.text)
	}
	for name, secret := range map[string]string{"laptop": laptop.Session(), "phone": phone.Session()} {
		if _, err := n.Lookup(secret); !errors.Is(err, identity.ErrRevoked) {
			n.awaitLookup(t, secret, identity.ErrRevoked)
		}
		if got := laptop.get(t, projectsPage); got.status != 303 {
			t.Errorf("the %s is still signed in: %d", name, got.status)
		}
	}
	n.awaitLookup(t, other.Session(), nil)
	if got := laptop.signIn(t, "ada@removed.example", password); got.status != 422 {
		t.Errorf("signing in after the removal: %d", got.status)
	}
	if again := p.must(t, 200, "POST", "/v1/members/"+id+"/remove", ""); again.text != removed.text {
		t.Errorf("removed again: %s, want %s", again.text, removed.text)
	}
	if got := p.call(t, operatorToken, "PATCH", "/v1/members/"+id, `{"role":"owner"}`); got.status != 404 {
		t.Errorf("the role of one who is gone: %d %s", got.status, got.text)
	}
	if list := p.must(t, 200, "GET", "/v1/members?organization="+acme.organization, ""); len(list.items(t)) != 1 || strings.Contains(list.text, "ada@") {
		t.Errorf("the members: %s", list.text)
	}
	p.add(t, p.tenant(t, "Other").organization, "ada@removed.example", "viewer")
}

// A role is in force in the sessions of its member at once, in every service.
func testRolesAreInForceAtOnce(t *testing.T, p *process) {
	n := p.world.follow(t)
	acme := p.tenant(t, "Acme")
	id := p.add(t, acme.organization, "ada@roles.example", "owner")
	p.add(t, acme.organization, "bob@roles.example", "owner")
	b := p.browser("192.0.2.1")
	b.signIn(t, "ada@roles.example", password)
	for _, role := range []string{"viewer", "admin"} {
		if got := p.must(t, 200, "PATCH", "/v1/members/"+id, text(map[string]any{"role": role})); got.get("role") != role {
			t.Errorf("changed: %s", got.text)
		}
		testenv.Eventually(t, func() error {
			if got := n.awaitLookup(t, b.Session(), nil); got.Role() != role {
				return fmt.Errorf("others know the session as %q, want %q", got.Role(), role)
			}
			return nil
		})
		if got, want := b.post(t, projectsPage, map[string]string{"name": "P"}), map[string]int{"viewer": 403, "admin": 303}[role]; got.status != want {
			t.Errorf("creating a project as %s: %d, want %d", role, got.status, want)
		}
	}
}

func ownersOf(t *testing.T, p *process, of tenant) (ids []string) {
	t.Helper()
	for _, item := range p.must(t, 200, "GET", "/v1/members?organization="+of.organization, "").items(t) {
		if item["role"] == "owner" {
			ids = append(ids, item["id"].(string))
		}
	}
	return ids
}

func invitation(organization, email, role string) map[string]any {
	return map[string]any{"organization": organization, "email": email, "role": role}
}

var invitationCode = regexp.MustCompile(`^weirinv_[0-9a-f]{48}$`)

// An invitation shows its code once, is created
// once per person, and shows its state.
func testInvitations(t *testing.T, p *process) {
	acme := p.tenant(t, "Acme")
	p.add(t, acme.organization, "ada@invited.example", "viewer")
	same := header{"Idempotency-Key", "one"}
	body := text(invitation(acme.organization, " Bob@Invited.Example ", "developer"))
	made := p.call(t, acme.token, "POST", "/v1/invitations", body, same)
	shape := map[string]any{
		"id": regexp.MustCompile(`^inv_[0-9a-f]{32}$`), "code": invitationCode, "organization": acme.organization, "email": "bob@invited.example",
		"role": "developer", "state": "open", "invited_by": acme.tokenID, "created_at": utc, "expires_at": utc, "revoked_at": nil,
		"accepted_at": nil, "member": nil,
	}
	expect(t, made, shape)
	if again := p.call(t, acme.token, "POST", "/v1/invitations", body, same); again.status != 409 || again.get("code") != "secret_shown_once" {
		t.Errorf("the same request again: %d %s", again.status, again.text)
	}
	for name, email := range map[string]string{"a member": "ADA@invited.example", "somebody invited": "bob@invited.example"} {
		got := p.call(t, acme.token, "POST", "/v1/invitations", text(invitation(acme.organization, email, "viewer")))
		if got.status != 400 || !slices.Equal(pointersOf(got), []string{"/email"}) {
			t.Errorf("inviting %s: %d %s", name, got.status, got.text)
		}
	}
	resent := p.call(t, acme.token, "POST", "/v1/invitations/"+made.get("id")+"/resend", "")
	expect(t, resent, shape)
	if resent.get("code") == made.get("code") || resent.get("id") != made.get("id") {
		t.Errorf("sent again: %s after %s", resent.text, made.text)
	}
	listed := p.call(t, acme.token, "GET", "/v1/invitations", "")
	delete(shape, "code")
	expectOne(t, listed, shape)
	revoked := p.call(t, acme.token, "POST", "/v1/invitations/"+made.get("id")+"/revoke", "")
	if revoked.status != 200 || revoked.get("state") != "revoked" || revoked.get("revoked_at") == "" {
		t.Errorf("revoked: %d %s", revoked.status, revoked.text)
	}
	if again := p.call(t, acme.token, "POST", "/v1/invitations/"+made.get("id")+"/revoke", ""); again.text != revoked.text {
		t.Errorf("revoked again: %s, want %s", again.text, revoked.text)
	}
	if got := p.call(t, acme.token, "POST", "/v1/invitations/"+made.get("id")+"/resend", ""); got.status != 409 || got.get("code") != "conflict" {
		t.Errorf("sending what was revoked: %d %s", got.status, got.text)
	}
	if got := p.call(t, acme.token, "POST", "/v1/invitations", body); got.status != 201 {
		t.Errorf("inviting after the revocation: %d %s", got.status, got.text)
	}
	if got := p.call(t, acme.token, "POST", "/v1/invitations", `{}`); !slices.Equal(pointersOf(got), []string{"/organization", "/email", "/role"}) {
		t.Errorf("without anything: %s", got.text)
	}
	for _, code := range []string{made.get("code"), resent.get("code")} {
		if strings.Contains(p.world.log.String()+p.world.dump(t), code) || strings.Contains(listed.text, code) {
			t.Error("a code is kept")
		}
	}
}

// An inviter can't find out whether an address is a member's elsewhere.
func testInvitingDisclosesNoMemberElsewhere(t *testing.T, p *process) {
	acme, other := p.tenant(t, "Acme"), p.tenant(t, "Other")
	p.add(t, other.organization, "taken@inviting.example", "owner")
	p.must(t, 201, "POST", "/v1/invitations", text(invitation(other.organization, "asked@inviting.example", "viewer")))
	plain := func(email string) string {
		got := p.call(t, acme.token, "POST", "/v1/invitations", text(invitation(acme.organization, email, "viewer")))
		if got.status != 201 {
			t.Fatalf("%s: %d %s", email, got.status, got.text)
		}
		return regexp.MustCompile(`inv_[0-9a-f]{48}|inv_[0-9a-f]{32}|\d{4}-\d\d-\d\dT[^"]+`).ReplaceAllString(strings.ReplaceAll(got.text, email, "E"), "X")
	}
	free := plain("free1@inviting.example")
	for _, email := range []string{"taken@inviting.example", "asked@inviting.example"} {
		if got := plain(email); got != free {
			t.Errorf("%s: %s, want %s", email, got, free)
		}
	}
}
