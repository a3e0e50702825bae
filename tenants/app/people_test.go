package app_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/tenants"
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

// An invited person joins with the link, and has the role
// of the invitation; the code is shown once and works once.
func testInviteAndJoin(t *testing.T, p *process) {
	acme := p.tenant(t, "Acme")
	admin := p.signedIn(t, acme, "admin")
	form := map[string]string{"email": "bob@joins.example", "role": "developer", "form": "f1"}
	shown := admin.post(t, membersPage+"/invitations", form)
	code := codeOf(t, "weirinv", shown.body)
	if shown.status != 201 || !strings.Contains(shown.text(), "https://weir.example/console/join#"+code) || shown.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("invite: %d %v %s", shown.status, shown.header, shown.body)
	}
	if got := admin.post(t, membersPage+"/invitations", form); got.status != 409 || strings.Contains(got.body, "weirinv_") {
		t.Errorf("the same form again: %d %s", got.status, got.body)
	}
	if got := admin.get(t, membersPage+"/invitations"); got.status != 200 || !strings.Contains(got.body, "bob@joins.example") || strings.Contains(got.body, code) {
		t.Errorf("the invitations: %d %s", got.status, got.body)
	}

	bob := p.browser("192.0.2.20")
	if got := bob.get(t, "/console/join"); got.status != 200 || !strings.Contains(got.body, "data-code") || !strings.Contains(got.body, "paste it") {
		t.Errorf("the form: %d %s", got.status, got.body)
	}
	for name, test := range map[string]struct{ field, code, email, password string }{
		"another address":  {"email", code, "eve@joins.example", password},
		"a short password": {"password", code, "bob@joins.example", "short"},
		"another code":     {"code", "weirinv_" + strings.Repeat("0", 48), "bob@joins.example", password},
		"no code":          {"code", "", "bob@joins.example", password},
		"a reset code":     {"code", "weirpwd_" + code[8:], "bob@joins.example", password},
	} {
		values := registration(test.code, test.email)
		values["password"] = test.password
		if got := bob.post(t, "/console/join", values); got.status != 422 || !strings.Contains(got.body, `id="fault-`+test.field+`"`) || bob.Session() != "" {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	if got := bob.post(t, "/console/join", registration(" "+code+"\n", "BOB@joins.example")); got.status != 303 || bob.Session() == "" {
		t.Fatalf("join: %d %s", got.status, got.body)
	}
	if got := bob.post(t, projectsPage, map[string]string{"name": "by Bob"}); got.status != 303 {
		t.Errorf("a developer creates a project: %d", got.status)
	}
	if got := p.browser("192.0.2.21").post(t, "/console/join", registration(code, "bob@joins.example")); got.status != 422 || !strings.Contains(got.body, "was used already") {
		t.Errorf("join again: %d %s", got.status, got.body)
	}
	if got := p.browser("192.0.2.22").signIn(t, "bob@joins.example", password); got.status != 303 {
		t.Errorf("sign in after that: %d", got.status)
	}
	if strings.Contains(p.world.log.String(), code) || strings.Contains(p.world.dump(t), code) {
		t.Error("the code is kept")
	}
}

// A code works once, even in two replicas at once.
func TestCodesWorkOnceAtTheSameMoment(t *testing.T) {
	w := newWorld(t)
	first, second := w.start(t, operatorToken), w.start(t, operatorToken)
	acme := first.tenant(t, "Acme")
	for round := range 3 {
		email := fmt.Sprintf("bob%d@example.com", round)
		code := first.must(t, 201, "POST", "/v1/invitations", text(invitation(acme.organization, email, "viewer"))).get("code")
		statuses := make([]int, 2)
		var group sync.WaitGroup
		for i, p := range []*process{first, second} {
			group.Go(func() {
				statuses[i] = p.browser("192.0.2.30").post(t, "/console/join", registration(code, email)).status
			})
		}
		group.Wait()
		if statuses[0]+statuses[1] != 303+422 {
			t.Errorf("round %d: %v", round, statuses)
		}
	}
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
func TestAttemptsWithCodesAreLimited(t *testing.T) {
	p := newWorld(t).start(t, operatorToken)
	for i, page := range []string{"/console/join", "/console/welcome", "/console/reset"} {
		b := p.browser(fmt.Sprintf("192.0.2.%d", 50+i))
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
func TestOwnerLinkEndsWithTheFirstMember(t *testing.T) {
	w := newWorld(t)
	w.output = &bytes.Buffer{}
	p := w.start(t, operatorToken)
	code := codeOf(t, "weirown", w.output.String())
	p.add(t, p.tenant(t, "Acme").organization, "ada@example.com", "viewer")
	if got := p.browser("192.0.2.60").post(t, "/console/welcome", registration(code, "eve@example.com")); got.status != 422 {
		t.Errorf("welcome: %d %s", got.status, got.body)
	}
}

// A member who lost the password gets a link from their
// manager, which works once and ends all sessions.
func testPasswordReset(t *testing.T, p *process) {
	const other = "battery staple horse"
	n := p.world.follow(t)
	acme := p.tenant(t, "Acme")
	id := p.add(t, acme.organization, "bob@reset.example", "developer")
	owner := p.add(t, acme.organization, "eve@reset.example", "owner")
	admin := p.signedIn(t, acme, "admin")
	if got := admin.post(t, membersPage+"/"+owner+"/reset", nil); got.status != 403 {
		t.Errorf("an admin resets an owner: %d %s", got.status, got.body)
	}
	bob := p.browser("192.0.2.70")
	bob.signIn(t, "bob@reset.example", password)
	void := codeOf(t, "weirpwd", admin.post(t, membersPage+"/"+id+"/reset", nil).body)
	code := codeOf(t, "weirpwd", admin.post(t, membersPage+"/"+id+"/reset", nil).body)
	reset := func(code, password string) page {
		return p.browser("192.0.2.71").post(t, "/console/reset", map[string]string{"code": code, "password": password})
	}
	for name, got := range map[string]page{"the link of before": reset(void, other), "a short password": reset(code, "short")} {
		if got.status != 422 {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	if got := reset(code, other); got.status != 303 || got.header.Get("Location") != "/console/sign-in" {
		t.Fatalf("reset: %d %s", got.status, got.body)
	}
	n.awaitLookup(t, bob.Session(), identity.ErrRevoked)
	if got := reset(code, other); got.status != 422 {
		t.Errorf("reset again: %d", got.status)
	}
	if got := p.browser("192.0.2.72").signIn(t, "bob@reset.example", password); got.status != 422 {
		t.Errorf("the password of before: %d", got.status)
	}
	if got := p.browser("192.0.2.72").signIn(t, "bob@reset.example", other); got.status != 303 {
		t.Errorf("the new password: %d", got.status)
	}
	if strings.Contains(p.world.log.String()+p.world.dump(t), code) || strings.Contains(p.world.log.String(), other) {
		t.Error("the code or the password is kept")
	}
}

// What a role may not do to members is
// refused with the reason, and not offered.
func testRolesOverMembers(t *testing.T, p *process) {
	acme := p.tenant(t, "Acme")
	owner := p.add(t, acme.organization, "ada@ranks.example", "owner")
	viewer := p.add(t, acme.organization, "bob@ranks.example", "viewer")
	for _, role := range tenants.Roles() {
		b := p.signedIn(t, acme, string(role))
		list := b.get(t, membersPage)
		for id, of := range map[string]tenants.Role{owner: tenants.Owner, viewer: tenants.Viewer} {
			if strings.Contains(list.body, membersPage+"/"+id+"/remove") != role.MayManage(of) {
				t.Errorf("%s is offered to remove an %s: %t", role, of, !role.MayManage(of))
			}
		}
		for name, act := range map[string]struct {
			got  page
			need tenants.Permission
		}{
			"see the members":   {list, tenants.MembersRead},
			"see invitations":   {b.get(t, membersPage+"/invitations"), tenants.MembersInvite},
			"see a viewer":      {b.get(t, membersPage+"/"+viewer), tenants.MembersManage},
			"see an owner":      {b.get(t, membersPage+"/"+owner), tenants.OwnersManage},
			"make a viewer own": {b.post(t, membersPage+"/"+viewer, map[string]string{"role": "owner"}), tenants.OwnersManage},
			"invite an owner":   {b.post(t, membersPage+"/invitations", map[string]string{"email": string(role) + "1@ranks.example", "role": "owner"}), tenants.OwnersManage},
			"invite a viewer":   {b.post(t, membersPage+"/invitations", map[string]string{"email": string(role) + "2@ranks.example", "role": "viewer"}), tenants.MembersInvite},
		} {
			if refused(act.got, role) == role.May(act.need) || act.got.status >= 404 {
				t.Errorf("%s: %s: %d %s", role, name, act.got.status, act.got.body)
			}
		}
		p.must(t, 200, "PATCH", "/v1/members/"+viewer, `{"role":"viewer"}`)
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

// The only owner gets the reason beside the field, and stays.
func testTheOnlyOwnerInTheConsole(t *testing.T, p *process) {
	acme := p.tenant(t, "Acme")
	b := p.signedIn(t, acme, "owner")
	id := ownersOf(t, p, acme)[0]
	if got := b.post(t, membersPage+"/"+id, map[string]string{"role": "viewer"}); got.status != 422 || !strings.Contains(got.body, `id="fault-role"`) {
		t.Errorf("step down: %d %s", got.status, got.body)
	}
	if got := b.post(t, membersPage+"/"+id+"/remove", nil); got.status != 409 || !strings.Contains(got.body, "only owner") {
		t.Errorf("leave: %d %s", got.status, got.body)
	}
	if got := b.get(t, membersPage); got.status != 200 || len(ownersOf(t, p, acme)) != 1 {
		t.Errorf("after that: %d", got.status)
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
