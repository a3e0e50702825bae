package signin_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

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
		t.Errorf("signing in with the former password: %d", got.status)
	}
	if got := s.browser("192.0.2.8").signIn(t, "ada@example.com", another); got.status != 303 {
		t.Errorf("signing in with the new one: %d", got.status)
	}
}

// Changes of who can sign in need a recent proof of identity.
// A form that was shown in time can be sent; a late one is
// refused, and its sender reads how to send it again.
func TestConfirmation(t *testing.T) {
	s := openSite(t, password.ForTests(), nil)
	b := s.signedIn(t, "ada")
	first := b.Session()
	s.pass(10 * time.Minute)
	asked, at := b.visit(t, passwordPage)
	if at != confirmPage+"?to="+url.QueryEscape(passwordPage) || !strings.Contains(asked.body, "Confirm that it is you") {
		t.Fatalf("after ten minutes: %s %s", at, asked.body)
	}
	form := map[string]string{"to": passwordPage, "password": wrong}
	if got := b.post(t, confirmPage, form); got.status != 422 || !strings.Contains(got.body, `value="`+passwordPage+`"`) || b.Session() != first {
		t.Errorf("a wrong password: %d %s", got.status, got.body)
	}
	form["password"] = secret
	if got := b.post(t, confirmPage, form); got.status != 303 || got.at() != passwordPage || b.Session() == first {
		t.Fatalf("the password: %d to %q", got.status, got.at())
	}
	if got, at := b.visit(t, passwordPage); got.status != 200 || at != passwordPage {
		t.Errorf("after that: %d %s", got.status, at)
	}
	if held, err := s.credentials.Lookup(b.Session()); err != nil || !held.AuthenticatedAt.Equal(s.now()) {
		t.Errorf("published is a proof at %s, %v", held.AuthenticatedAt, err)
	}
	if held, err := s.credentials.Lookup(first); err != nil || !held.AuthenticatedAt.IsZero() {
		t.Errorf("the secret before proves something too: %v", err)
	}
	s.pass(14 * time.Minute)
	if got := b.post(t, passwordPage, nil); got.status == 403 {
		t.Errorf("a form that was shown in time: %d %s", got.status, got.body)
	}
	s.pass(time.Minute)
	if got := b.post(t, passwordPage, nil); got.status != 403 || !regexp.MustCompile(`href="/console/confirm" target="_blank"`).MatchString(got.body) {
		t.Errorf("a form that comes late: %d %s", got.status, got.body)
	}
	if got := b.confirm(t, secret); got.at() != confirmPage {
		t.Errorf("confirming beside the form: %d to %q", got.status, got.at())
	}
	if got := b.get(t, confirmPage); !strings.Contains(got.body, "send it again") {
		t.Errorf("after that: %s", got.body)
	}
	if got := b.post(t, passwordPage, nil); got.status == 403 {
		t.Errorf("the form again: %d %s", got.status, got.body)
	}
}

// Confirmations are limited like sign-ins. A thief of a session
// who guesses does not keep its member from signing in, and
// guesses at the sign-in do not keep members from confirming.
func TestAttemptsToConfirmAreLimited(t *testing.T) {
	s := openSite(t, password.ForTests(), nil)
	stolen, own := s.signedIn(t, "ada"), s.signedIn(t, "bob")
	attempts := 0
	for attempts < 20 && stolen.confirm(t, wrong).status != 429 {
		attempts++
	}
	if got := stolen.confirm(t, secret); attempts != 10 || got.status != 429 || got.header.Get("Retry-After") == "" {
		t.Errorf("after %d attempts: %d", attempts, got.status)
	}
	if got := s.browser("192.0.2.99").signIn(t, "ada@example.com", secret); got.status != 303 {
		t.Errorf("the member signs in: %d", got.status)
	}
	stranger := s.browser("192.0.2.7") // from where all of them come
	for range 25 {
		stranger.signIn(t, "bob@example.com", wrong)
	}
	if got := own.confirm(t, secret); got.status != 303 {
		t.Errorf("who has signed in confirms: %d", got.status)
	}
}
