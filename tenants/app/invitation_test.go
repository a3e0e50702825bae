package app_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

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
