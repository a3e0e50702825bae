package signin_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/tenants/internal/password"
	"github.com/weirlog/weir/tenants/passkeytest"
)

const (
	passkeysPage   = accountPage + "/passkeys"
	signInPasskey  = signInPage + "/passkey"
	confirmPasskey = confirmPage + "/passkey"
)

// asked returns the challenge that an address responds with.
func (b *browser) asked(t *testing.T, path string) string {
	t.Helper()
	got := b.post(t, path+"/options", nil)
	if got.status != http.StatusOK || got.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%s: %d %s", path, got.status, got.body)
	}
	return got.body
}

// register adds a passkey to the signed-in member.
func (b *browser) register(t *testing.T) *passkeytest.Device {
	t.Helper()
	d, answer := passkeytest.New(t, b.asked(t, passkeysPage))
	if got := b.post(t, passkeysPage, map[string]string{"name": "Phone", "credential": answer}); got.status != 303 {
		t.Fatalf("registered: %d %s", got.status, got.body)
	}
	return d
}

// An added passkey signs its member in, with an answer that counts once.
func TestSignInByPasskey(t *testing.T) {
	s := openSite(t, password.ForTests(), nil)
	owner := s.signedIn(t, "ada")
	if got := owner.get(t, passkeysPage+"/new"); got.status != 200 || !strings.Contains(got.body, `name="name"`) {
		t.Errorf("the form: %d %s", got.status, got.body)
	}
	phone, visitor := owner.register(t), s.browser("198.51.100.9")
	form := phone.Answer(t, passkeytest.Site, visitor.asked(t, signInPasskey))
	form["to"] = accountPage
	if got := s.browser("198.51.100.9").post(t, signInPasskey, form); got.status != 422 || !strings.Contains(got.body, "in another browser") {
		t.Errorf("in another browser: %d %s", got.status, got.body)
	}
	if got := visitor.post(t, signInPasskey, form); got.status != 303 || got.at() != accountPage {
		t.Fatalf("signed in: %d to %q", got.status, got.at())
	}
	if who, err := s.credentials.Lookup(visitor.Session()); err != nil || who.Member != "mem_ada" {
		t.Errorf("signed in as %+v, %v", who, err)
	}
	again := s.browser("198.51.100.9")
	again.asked(t, signInPasskey)
	if got := again.post(t, signInPasskey, form); got.status != 422 || again.Session() != "" {
		t.Errorf("the answer again: %d %s", got.status, got.body)
	}
}

// A passkey is a recent proof, even for its
// own removal; after that it is refused.
func TestConfirmByPasskey(t *testing.T) {
	s := openSite(t, password.ForTests(), nil)
	b := s.signedIn(t, "ada")
	phone := b.register(t)
	remove := regexp.MustCompile(passkeysPage + `/[^/"]+/remove`).FindString(b.get(t, accountPage).body)
	s.pass(16 * time.Minute)
	if got := b.post(t, remove, nil); got.status != 403 {
		t.Errorf("removed without a proof: %d %s", got.status, got.body)
	}
	b.asked(t, confirmPasskey)
	if got := b.post(t, confirmPasskey, map[string]string{"credential": "{}", "to": remove}); got.status != 422 {
		t.Errorf("an answer that is none: %d %s", got.status, got.body)
	}
	form := phone.Answer(t, passkeytest.Site, b.asked(t, confirmPasskey))
	form["to"] = remove
	if got := b.post(t, confirmPasskey, form); got.status != 303 || got.at() != remove {
		t.Fatalf("confirmed: %d to %q", got.status, got.at())
	}
	if got := s.signedIn(t, "bob").post(t, remove, nil); got.status != 404 {
		t.Errorf("another's passkey is removed: %d %s", got.status, got.body)
	}
	if got := b.post(t, remove, nil); got.status != 303 || strings.Contains(b.get(t, accountPage).body, "Phone") {
		t.Errorf("removed: %d %s", got.status, got.body)
	}
	visitor := s.browser("198.51.100.9")
	if got := visitor.post(t, signInPasskey, phone.Answer(t, passkeytest.Site, visitor.asked(t, signInPasskey))); got.status != 422 || visitor.Session() != "" {
		t.Errorf("signed in by a removed one: %d %s", got.status, got.body)
	}
}

// Challenges are limited: for sign-ins by
// network, for confirmations by member.
func TestQuestionsAreLimited(t *testing.T) {
	s := openSite(t, password.ForTests(), nil)
	ada := s.signedIn(t, "ada")
	ada.register(t)
	for path, b := range map[string]*browser{signInPasskey: s.browser("192.0.2.60"), confirmPasskey: ada} {
		asked := 0
		for asked < 30 && b.post(t, path+"/options", nil).status == 200 {
			asked++
		}
		if got := b.post(t, path+"/options", nil); asked == 30 || got.status != 429 || got.header.Get("Retry-After") == "" {
			t.Errorf("%s: %d after %d questions", path, got.status, asked)
		}
	}
	if got := s.browser("192.0.2.61").post(t, signInPasskey+"/options", nil); got.status != 200 {
		t.Errorf("from another network: %d", got.status)
	}
}
