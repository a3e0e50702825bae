package app_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// password is that of every member of every test.
const password = "correct horse battery staple"

func member(organization, email, role string) map[string]any {
	return map[string]any{"organization": organization, "email": email, "name": "Ada", "role": role, "password": password}
}

// A member is added with one spelling of the address, which nobody else in the installation can have; the answer does
// not repeat the password.
func TestMembers(t *testing.T) {
	w := newWorld(t)
	p := w.start(t, operatorToken)
	acme, other := p.tenant(t, "Acme"), p.tenant(t, "Other")
	added := p.must(t, 201, "POST", "/v1/members", text(member(acme.organization, " Ada@Example.COM ", "owner")), header{"Idempotency-Key", "one"})
	expect(t, added, map[string]any{
		"id": regexp.MustCompile(`^mem_[0-9a-f]{32}$`), "organization": acme.organization, "email": "ada@example.com",
		"name": "Ada", "role": "owner", "created_at": utc,
	})
	again := p.must(t, 201, "POST", "/v1/members", text(member(acme.organization, "ada@example.com", "owner")), header{"Idempotency-Key", "one"})
	if again.text != added.text {
		t.Errorf("the same request again: got %s, want %s", again.text, added.text)
	}
	for _, organization := range []string{acme.organization, other.organization} {
		got := p.call(t, operatorToken, "POST", "/v1/members", text(member(organization, "ADA@example.com", "viewer")))
		if got.status != 409 || got.get("code") != "conflict" {
			t.Errorf("the address again: got %d %s", got.status, got.text)
		}
	}
	got := p.call(t, operatorToken, "POST", "/v1/members", `{"password":"short"}`)
	if pointers := pointersOf(got); !slices.Equal(pointers, []string{"/organization", "/email", "/name", "/role", "/password"}) {
		t.Errorf("pointers %q: %s", pointers, got.text)
	}
	for _, secret := range []string{password, "argon2id", `"short"`} {
		if strings.Contains(w.log.String(), secret) || strings.Contains(added.text+again.text+got.text, secret) {
			t.Errorf("%q is logged or answered", secret)
		}
	}
}
