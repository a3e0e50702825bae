package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/descope/virtualwebauthn"

	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/tenants/passkeytest"
)

const (
	passkeysPage   = accountPage + "/passkeys"
	signInPasskey  = "/console/sign-in/passkey"
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

// register adds a new device's passkey to the signed-in member.
func (b *browser) register(t *testing.T, name string) *passkeytest.Device {
	t.Helper()
	d, answer := passkeytest.New(t, b.asked(t, passkeysPage))
	if got := b.post(t, passkeysPage, map[string]string{"name": name, "credential": answer}); got.status != 303 {
		t.Fatalf("register %s: %d %s", name, got.status, got.body)
	}
	return d
}

// passkeyOwner returns a browser with an owner's
// session, and the owner's passkey.
func (p *process) passkeyOwner(t *testing.T) (*browser, *passkeytest.Device) {
	t.Helper()
	b := p.signedIn(t, p.tenant(t, "Acme"), "owner")
	return b, b.register(t, "Laptop")
}

// passkeyOwnerLater is passkeyOwner with
// the clock of a server of its own.
func passkeyOwnerLater(t *testing.T) (*browser, *passkeytest.Device, *watch, *neighbour) {
	t.Helper()
	b, clock, n := signedInLater(t)
	return b, b.register(t, "Laptop"), clock, n
}

// A passkey signs its member in without a name
// or a password. The session shows the method.
func testSignInByPasskey(t *testing.T, p *process) {
	n := p.world.follow(t)
	b, laptop := p.passkeyOwner(t)
	key := b.register(t, "Key <b>")
	holder := n.awaitLookup(t, b.Session(), nil)
	if listed := b.get(t, accountPage).text(); !strings.Contains(listed, ">Laptop") || !strings.Contains(listed, ">Key <b>") || !strings.Contains(listed, "never") {
		t.Errorf("the list: %s", listed)
	}
	for _, d := range []*passkeytest.Device{laptop, key} {
		other := p.browser("198.51.100.9")
		if shown := other.get(t, "/console/sign-in?to=/console/settings/account").body; !strings.Contains(shown, `data-passkey="get"`) || !strings.Contains(shown, "passkey.js") {
			t.Errorf("the sign-in: %s", shown)
		}
		form := d.Answer(t, passkeytest.Site, other.asked(t, signInPasskey))
		form["to"] = accountPage
		if got := other.post(t, signInPasskey, form); got.status != 303 || got.header.Get("Location") != accountPage {
			t.Fatalf("sign in: %d %s", got.status, got.body)
		}
		if got := n.awaitLookup(t, other.Session(), nil); got.Member != holder.Member || got.ID == holder.ID {
			t.Errorf("signed in as %+v", got)
		}
		if listed := other.get(t, accountPage).body; !strings.Contains(listed, ">Passkey<") {
			t.Errorf("the sessions: %s", listed)
		}
	}
}

// A reset removes passkeys: somebody with the password
// could have added one. The member and the audit see that.
func testResetRemovesPasskeys(t *testing.T, p *process) {
	n := p.world.follow(t)
	b, laptop := p.passkeyOwner(t)
	key, holder := b.register(t, "Key"), n.awaitLookup(t, b.Session(), nil)
	code := p.must(t, 201, "POST", "/v1/members/"+holder.Member+"/reset-code", "").get("code")
	if shown := p.browser("192.0.2.1").get(t, "/console/reset").body; !strings.Contains(shown, "passkeys are removed") {
		t.Errorf("the page of the reset: %s", shown)
	}
	other := p.browser("192.0.2.1")
	if got := other.post(t, "/console/reset", map[string]string{"code": code, "password": "battery staple horse"}); got.status != 303 {
		t.Fatalf("reset: %d %s", got.status, got.body)
	}
	if shown := other.get(t, "/console/sign-in").body; !strings.Contains(shown, "old passkeys no longer work") {
		t.Errorf("after that: %s", shown)
	}
	for _, d := range []*passkeytest.Device{laptop, key} {
		form := d.Answer(t, passkeytest.Site, other.asked(t, signInPasskey))
		if got := other.post(t, signInPasskey, form); got.status != 422 || other.Session() != "" {
			t.Errorf("a passkey of before: %d", got.status)
		}
	}
	removed := p.must(t, 200, "GET", "/v1/audit-events?organization="+holder.Organization+"&action=passkey.removed", "").items(t)
	if len(removed) != 2 {
		t.Errorf("the audit has %v", removed)
	}
}

// Passkeys are added and removed only after
// another proof; a removed one is refused.
func TestPasskeysNeedAFreshProof(t *testing.T) {
	b, laptop, clock, _ := passkeyOwnerLater(t)
	remove := regexp.MustCompile(`/console/settings/account/passkeys/[^/"]+/remove`).FindString(b.get(t, accountPage).body)
	clock.pass(16 * time.Minute)
	for _, path := range []string{passkeysPage + "/new", remove} {
		if got := b.navigate(t, path); got.status != 303 || !strings.HasPrefix(got.header.Get("Location"), confirmPage) {
			t.Errorf("%s: %d", path, got.status)
		}
	}
	for _, path := range []string{passkeysPage + "/options", passkeysPage, remove} {
		if got := b.post(t, path, map[string]string{"name": "x"}); got.status != 403 {
			t.Errorf("%s: %d", path, got.status)
		}
	}
	form := laptop.Answer(t, passkeytest.Site, b.asked(t, confirmPasskey))
	form["to"] = remove
	if got := b.post(t, confirmPasskey, form); got.status != 303 || got.header.Get("Location") != remove {
		t.Fatalf("confirm by the passkey: %d %s", got.status, got.body)
	}
	if got := b.post(t, remove, nil); got.status != 303 || strings.Contains(b.get(t, accountPage).body, "Laptop") {
		t.Errorf("remove: %d %s", got.status, got.body)
	}
	other := b.p.browser("198.51.100.9")
	if got := other.post(t, signInPasskey, laptop.Answer(t, passkeytest.Site, other.asked(t, signInPasskey))); got.status != 422 || other.Session() != "" {
		t.Errorf("sign in by a removed passkey: %d", got.status)
	}
}

// An answer counts once, soon, for its purpose, in the challenged browser.
func TestPasskeyAnswersAreForOneQuestion(t *testing.T) {
	b, laptop, clock, n := passkeyOwnerLater(t)
	visitor := func() *browser { return b.p.browser("198.51.100.9") }
	for name, act := range map[string]func() (*browser, page){
		"again": func() (*browser, page) {
			first := visitor()
			form := laptop.Answer(t, passkeytest.Site, first.asked(t, signInPasskey))
			ticket := *first.Cookies["__Host-weir-challenge"]
			if got := first.post(t, signInPasskey, form); got.status != 303 {
				t.Fatalf("the first time: %d", got.status)
			}
			again := visitor()
			again.Cookies[ticket.Name] = &ticket
			return again, again.post(t, signInPasskey, form)
		},
		"too late": func() (*browser, page) {
			late := visitor()
			form := laptop.Answer(t, passkeytest.Site, late.asked(t, signInPasskey))
			clock.pass(5 * time.Minute)
			return late, late.post(t, signInPasskey, form)
		},
		"without having been asked": func() (*browser, page) {
			form := laptop.Answer(t, passkeytest.Site, visitor().asked(t, signInPasskey))
			stranger := visitor()
			return stranger, stranger.post(t, signInPasskey, form)
		},
		"to another's question": func() (*browser, page) {
			form, other := laptop.Answer(t, passkeytest.Site, visitor().asked(t, signInPasskey)), visitor()
			other.asked(t, signInPasskey)
			return other, other.post(t, signInPasskey, form)
		},
		"to be confirmed, for a sign-in": func() (*browser, page) {
			form, other := laptop.Answer(t, passkeytest.Site, b.asked(t, confirmPasskey)), visitor()
			other.Cookies["__Host-weir-challenge"] = b.Cookies["__Host-weir-challenge"]
			return other, other.post(t, signInPasskey, form)
		},
		"for another site": func() (*browser, page) {
			other := visitor()
			evil := virtualwebauthn.RelyingParty{ID: passkeytest.Site.ID, Name: passkeytest.Site.Name, Origin: "https://evil.example"}
			return other, other.post(t, signInPasskey, laptop.Answer(t, evil, other.asked(t, signInPasskey)))
		},
		"for another host": func() (*browser, page) {
			other := visitor()
			evil := virtualwebauthn.RelyingParty{ID: "evil.example", Name: passkeytest.Site.Name, Origin: passkeytest.Site.Origin}
			return other, other.post(t, signInPasskey, laptop.Answer(t, evil, other.asked(t, signInPasskey)))
		},
		"that is none": func() (*browser, page) {
			other := visitor()
			other.asked(t, signInPasskey)
			return other, other.post(t, signInPasskey, map[string]string{"credential": `{"id":"x"}`})
		},
		"of somebody else": func() (*browser, page) {
			other, forged := visitor(), *laptop
			forged.Authenticator.Options.UserHandle = []byte("mem_0")
			return other, other.post(t, signInPasskey, forged.Answer(t, passkeytest.Site, other.asked(t, signInPasskey)))
		},
		"without a fingerprint": func() (*browser, page) {
			other, touched := visitor(), *laptop
			touched.Authenticator.Options.UserNotVerified = true
			return other, other.post(t, signInPasskey, touched.Answer(t, passkeytest.Site, other.asked(t, signInPasskey)))
		},
	} {
		in, got := act()
		if got.status != 422 || in.Session() != "" || !strings.Contains(got.body, `role="alert"`) {
			t.Errorf("an answer %s: %d, a session: %t", name, got.status, in.Session() != "")
		}
		clock.pass(time.Minute)
	}
	if got := b.post(t, confirmPasskey, laptop.Answer(t, passkeytest.Site, visitor().asked(t, signInPasskey))); got.status != 422 {
		t.Errorf("confirm by an answer for a sign-in: %d", got.status)
	}
	n.awaitLookup(t, b.Session(), nil)
}

// A count of uses that does not grow suggests a copy: the
// passkey is refused from then on, and its member reads why.
func testCopiesOfPasskeysAreFound(t *testing.T, p *process) {
	b, laptop := p.passkeyOwner(t)
	copied := *laptop
	other := p.browser("198.51.100.9")
	if got := other.post(t, signInPasskey, laptop.Answer(t, passkeytest.Site, other.asked(t, signInPasskey))); got.status != 303 {
		t.Fatalf("sign in: %d", got.status)
	}
	thief := p.browser("203.0.113.9")
	if got := thief.post(t, signInPasskey, copied.Answer(t, passkeytest.Site, thief.asked(t, signInPasskey))); got.status != 422 || !strings.Contains(got.body, "may be a copy") || thief.Session() != "" {
		t.Errorf("sign in by a copy: %d %s", got.status, got.body)
	}
	again := p.browser("198.51.100.9")
	if got := again.post(t, signInPasskey, laptop.Answer(t, passkeytest.Site, again.asked(t, signInPasskey))); got.status != 422 {
		t.Errorf("sign in by either: %d", got.status)
	}
	if listed := b.get(t, accountPage).body; !strings.Contains(listed, "There may be a copy") {
		t.Errorf("the list: %s", listed)
	}
}

// A device with a passkey here is refused with that reason:
// one passkey is not registered twice, nor for somebody else.
func testPasskeysAreUnique(t *testing.T, p *process) {
	n := p.world.follow(t)
	b, laptop := p.passkeyOwner(t)
	question := b.asked(t, passkeysPage)
	options, err := virtualwebauthn.ParseAttestationOptions(question)
	if err != nil || !laptop.Credential.IsExcludedForAttestation(*options) {
		t.Errorf("asked %s: %v", question, err)
	}
	form := map[string]string{"name": "", "credential": virtualwebauthn.CreateAttestationResponse(passkeytest.Site, laptop.Authenticator, laptop.Credential, *options)}
	if got := b.post(t, passkeysPage, form); got.status != 422 || !strings.Contains(got.body, `id="fault-name"`) {
		t.Errorf("without a name: %d %s", got.status, got.body)
	}
	form["name"] = "again"
	if got := b.post(t, passkeysPage, form); got.status != 422 {
		t.Errorf("the same one again: %d %s", got.status, got.body)
	}
	n.awaitLookup(t, b.Session(), nil)
}

// Nobody removes others' passkeys, and the
// address in a request decides nothing.
func testPasskeysAreOnesOwn(t *testing.T, p *process) {
	acme := p.tenant(t, "Acme")
	owner, viewer := p.signedIn(t, acme, "owner"), p.signedIn(t, acme, "viewer")
	owner.register(t, "Laptop")
	remove := regexp.MustCompile(`/console/settings/account/passkeys/[^/"]+/remove`).FindString(owner.get(t, accountPage).body)
	for _, path := range []string{remove, passkeysPage + "/pky_0/remove", passkeysPage + "/%00/remove"} {
		if get, post := viewer.get(t, path), viewer.post(t, path, nil); get.status != 404 || post.status != 404 {
			t.Errorf("%s: %d %d", path, get.status, post.status)
		}
	}
	var options struct{ PublicKey struct{ RPID string } }
	got := p.browser("192.0.2.1").post(t, signInPasskey+"/options", nil, header{"Host", "evil.example"}, header{"X-Forwarded-Host", "evil.example"})
	if err := json.Unmarshal([]byte(got.body), &options); err != nil || options.PublicKey.RPID != passkeytest.Site.ID {
		t.Errorf("asked for %+v, %v", options, err)
	}
	if _, known := viewer.Cookies[identity.SessionCookie]; !known {
		t.Error("the viewer was signed out")
	}
}

// Challenges are limited, as each may become an attempt.
func TestQuestionsAreLimited(t *testing.T) {
	p := newWorld(t).start(t, operatorToken)
	for i := range 30 {
		if got := p.browser("192.0.2.60").post(t, signInPasskey+"/options", nil); got.status == 429 {
			if i != 20 || got.header.Get("Retry-After") == "" {
				t.Errorf("%d questions, %v", i, got.header)
			}
			return
		}
	}
	t.Error("there is no end to the questions")
}

// Requests for challenges count against their own network
// alone: not another network's, nor that of passwords in their
// own. Guessed passwords do not count against challenges.
func TestWhoAsksStopsNobodyElse(t *testing.T) {
	_, p, _ := withProvider(t)
	acme := p.tenant(t, "Acme")
	laptop := p.signedIn(t, acme, "owner").register(t, "Laptop")
	stranger := p.browser("192.0.2.60")
	for asked := 0; stranger.post(t, signInPasskey+"/options", nil).status != 429; asked++ {
		if asked > 30 {
			t.Fatal("there is no end to the questions")
		}
	}
	if got := stranger.get(t, oidcPage); got.status != 429 {
		t.Errorf("by the provider, who has no more questions: %d", got.status)
	}
	other := p.browser("192.0.2.61")
	if got := other.post(t, signInPasskey, laptop.Answer(t, passkeytest.Site, other.asked(t, signInPasskey))); got.status != 303 {
		t.Errorf("by passkey, from another network: %d", got.status)
	}
	if got := p.browser("192.0.2.61").get(t, oidcPage); got.status != 303 {
		t.Errorf("by the provider, from another network: %d", got.status)
	}
	if got := p.browser("192.0.2.60").signIn(t, ownerOf(acme), password); got.status != 303 {
		t.Errorf("by password, from the same network: %d", got.status)
	}
	for guessed := 0; p.browser("192.0.2.62").signIn(t, fmt.Sprintf("%d@example.com", guessed), "wrong horse battery staple").status != 429; guessed++ {
		if guessed > 30 {
			t.Fatal("there is no end to the guesses")
		}
	}
	if got := p.browser("192.0.2.62").post(t, signInPasskey+"/options", nil); got.status != 200 {
		t.Errorf("a question, where passwords were guessed: %d", got.status)
	}
}
