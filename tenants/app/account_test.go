package app_test

import (
	"strings"
	"testing"
)

const accountPage = "/console/settings/account"

// again signs the same member in by another browser.
func (b *browser) again(t *testing.T, email, address string) *browser {
	t.Helper()
	other := b.p.browser(address)
	if got := other.signIn(t, email, password); got.status != 303 {
		t.Fatalf("sign in again: %d %s", got.status, got.body)
	}
	return other
}

func ownerOf(of tenant) string { return emailOf(of, "owner") }

// emailOf is the address of signedIn's member.
func emailOf(of tenant, role string) string {
	return role + "@" + strings.ReplaceAll(of.organization, "_", "-") + ".example.com"
}

// Only tests use cheap hashes of passwords: the default is slow to guess.
func TestPasswordsAreDear(t *testing.T) {
	w := newWorld(t)
	w.expensivePasswords = true
	p := w.start(t, operatorToken)
	p.add(t, p.tenant(t, "Acme").organization, "ada@example.com", "owner")
	if kept := w.dump(t); !strings.Contains(kept, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Error("the password is hashed otherwise")
	}
}
