package signin_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/descope/virtualwebauthn"

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

// An added passkey signs its member in, without a name or a password.
func TestSignInByPasskey(t *testing.T) {
	s := openSite(t, password.ForTests(), nil)
	owner := s.signedIn(t, "ada")
	if got := owner.get(t, passkeysPage+"/new"); got.status != 200 || !strings.Contains(got.body, `name="name"`) {
		t.Errorf("the form: %d %s", got.status, got.body)
	}
	phone, visitor := owner.register(t), s.browser("198.51.100.9")
	if shown := visitor.get(t, signInPage).body; !strings.Contains(shown, `data-passkey="get"`) || !strings.Contains(shown, "passkey.js") {
		t.Errorf("the sign-in: %s", shown)
	}
	form := phone.Answer(t, passkeytest.Site, visitor.asked(t, signInPasskey))
	form["to"] = accountPage
	if got := visitor.post(t, signInPasskey, form); got.status != 303 || got.at() != accountPage {
		t.Fatalf("signed in: %d to %q", got.status, got.at())
	}
	if who, err := s.credentials.Lookup(visitor.Session()); err != nil || who.Member != "mem_ada" {
		t.Errorf("signed in as %+v, %v", who, err)
	}
	if listed := visitor.get(t, accountPage).body; !strings.Contains(listed, ">Passkey<") {
		t.Errorf("the sessions: %s", listed)
	}
}

// An answer counts once, soon, for its purpose, in the challenged browser.
func TestPasskeyAnswersAreForOneQuestion(t *testing.T) {
	s := openSite(t, password.ForTests(), nil)
	owner := s.signedIn(t, "ada")
	phone := owner.register(t)
	visitor := func() *browser { return s.browser("198.51.100.9") }
	const ticket = "__Host-weir-challenge"
	answer := func(site virtualwebauthn.RelyingParty, of passkeytest.Device) func() (*browser, page) {
		return func() (*browser, page) {
			b := visitor()
			return b, b.post(t, signInPasskey, of.Answer(t, site, b.asked(t, signInPasskey)))
		}
	}
	site, host, forged, touched := passkeytest.Site, passkeytest.Site, *phone, *phone
	site.Origin, host.ID = "https://evil.example", "evil.example"
	forged.Authenticator.Options.UserHandle, touched.Authenticator.Options.UserNotVerified = []byte("mem_0"), true
	for name, act := range map[string]func() (*browser, page){
		"for another site": answer(site, *phone), "for another host": answer(host, *phone),
		"of somebody else": answer(passkeytest.Site, forged), "without a fingerprint": answer(passkeytest.Site, touched),
		"again": func() (*browser, page) {
			first, again := visitor(), visitor()
			form := phone.Answer(t, passkeytest.Site, first.asked(t, signInPasskey))
			again.Cookies[ticket] = first.Cookies[ticket]
			if got := first.post(t, signInPasskey, form); got.status != 303 {
				t.Fatalf("the first time: %d", got.status)
			}
			return again, again.post(t, signInPasskey, form)
		},
		"too late": func() (*browser, page) {
			late := visitor()
			form := phone.Answer(t, passkeytest.Site, late.asked(t, signInPasskey))
			s.pass(5 * time.Minute)
			return late, late.post(t, signInPasskey, form)
		},
		"without having been asked": func() (*browser, page) {
			form, stranger := phone.Answer(t, passkeytest.Site, visitor().asked(t, signInPasskey)), visitor()
			return stranger, stranger.post(t, signInPasskey, form)
		},
		"to another's question": func() (*browser, page) {
			form, other := phone.Answer(t, passkeytest.Site, visitor().asked(t, signInPasskey)), visitor()
			other.asked(t, signInPasskey)
			return other, other.post(t, signInPasskey, form)
		},
		"to be confirmed, for a sign-in": func() (*browser, page) {
			form, other := phone.Answer(t, passkeytest.Site, owner.asked(t, confirmPasskey)), visitor()
			other.Cookies[ticket] = owner.Cookies[ticket]
			return other, other.post(t, signInPasskey, form)
		},
		"that is none": func() (*browser, page) {
			other := visitor()
			other.asked(t, signInPasskey)
			return other, other.post(t, signInPasskey, map[string]string{"credential": `{"id":"x"}`})
		},
	} {
		in, got := act()
		if got.status != 422 || in.Session() != "" || !strings.Contains(got.body, `role="alert"`) {
			t.Errorf("an answer %s: %d, a session: %t", name, got.status, in.Session() != "")
		}
		s.pass(time.Minute)
	}
	if got := owner.post(t, confirmPasskey, phone.Answer(t, passkeytest.Site, visitor().asked(t, signInPasskey))); got.status != 422 {
		t.Errorf("confirm by an answer for a sign-in: %d", got.status)
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
	for _, path := range []string{passkeysPage + "/new", remove} {
		if got := b.get(t, path); got.status != 303 || !strings.HasPrefix(got.at(), confirmPage) {
			t.Errorf("%s without a proof: %d to %q", path, got.status, got.at())
		}
	}
	for _, path := range []string{passkeysPage + "/options", passkeysPage, remove} {
		if got := b.post(t, path, map[string]string{"name": "x"}); got.status != 403 {
			t.Errorf("%s sent without a proof: %d %s", path, got.status, got.body)
		}
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
