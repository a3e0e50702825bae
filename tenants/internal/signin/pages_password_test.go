package signin_test

import (
	"strings"
	"testing"

	"github.com/weirlog/weir/tenants/internal/password"
)

// A member who shows the previous password sets another one:
// it counts from then on, and all other sessions have ended.
func TestPasswordIsChanged(t *testing.T) {
	s := openSite(t, password.ForTests(), nil)
	b, elsewhere := s.signedIn(t, "ada"), s.signedIn(t, "ada")
	const another = "eleven amber kettles sing"
	change := func(before, after string) page {
		return b.post(t, passwordPage, map[string]string{"current_password": before, "password": after})
	}
	for fault, got := range map[string]page{
		"current_password": change(wrong, another), "password": change(secret, "password1234"),
	} {
		if got.status != 422 || !strings.Contains(got.body, `id="fault-`+fault+`"`) {
			t.Errorf("a fault of %s: %d %s", fault, got.status, got.body)
		}
	}
	if got := change(secret, another); got.status != 303 || got.at() != accountPage {
		t.Fatalf("changed: %d %s", got.status, got.body)
	}
	if shown := b.get(t, accountPage); shown.status != 200 || !strings.Contains(shown.body, "Your password was changed") {
		t.Errorf("the browser that changed it: %d %s", shown.status, shown.body)
	}
	if _, at := elsewhere.visit(t, accountPage); !strings.HasPrefix(at, signInPage) {
		t.Errorf("another browser still opens %s", at)
	}
	if got := s.browser("192.0.2.8").signIn(t, "ada@example.com", secret); got.status != 422 {
		t.Errorf("signing in with the password of before: %d", got.status)
	}
	if got := s.browser("192.0.2.8").signIn(t, "ada@example.com", another); got.status != 303 {
		t.Errorf("signing in with the new one: %d", got.status)
	}
}
