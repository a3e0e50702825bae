package app_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
)

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
		testenv.Eventually(t, timeout, func() error {
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
