//go:build browser

package browser

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// stored is all that pages can leave in the browser for its next user,
// except the session, which no script reads.
const stored = `Promise.all([caches.keys(), indexedDB.databases()]).then(([kept, databases]) => JSON.stringify(
	[[localStorage, sessionStorage].map((s) => Object.keys(s).map((key) => [key, s.getItem(key)])),
		document.cookie, history.state, window.name, kept, databases]))`

// traces are what stays in a browser, by name: addresses and titles in its
// history, requested addresses, the sent origin, and what pages have stored.
func (b *tab) traces() map[string]string {
	b.t.Helper()
	var history strings.Builder
	for _, entry := range call(b, page.GetNavigationHistory, cdp.Empty{}).Entries {
		history.WriteString(entry.URL + " " + entry.UserTypedURL + " " + entry.Title + "\n")
	}
	b.mu.Lock()
	asked := strings.Join(b.asked, "\n")
	b.mu.Unlock()
	return map[string]string{"the history": history.String(), "an address that was asked for": asked, "what pages have stored": ask[string](b, stored)}
}

// remembersNone fails the test if a secret stays in the browser;
// secrets are by name.
func (b *tab) remembersNone(secrets map[string]string) {
	b.t.Helper()
	for place, text := range b.traces() {
		if text == "" {
			b.t.Errorf("there was nothing to look through: %s", place)
		}
		for name, secret := range secrets {
			if secret == "" || strings.Contains(text, secret) {
				b.t.Errorf("%s shows %s", place, name)
			}
		}
	}
}

// The search works: a secret planted in each place is found.
func TestTracesAreFound(t *testing.T) {
	in := newInstallation(t)
	b := openTab(t, startChromium(t, in.origin), in.origin)
	for place, plant := range map[string]string{
		"the history":                   `history.pushState(null, "", "#planted")`,
		"an address that was asked for": `fetch("/console/assets/planted/weir.css").then(() => null)`,
		"what pages have stored":        `localStorage.setItem("key", "planted")`,
	} {
		b.open("/console/sign-in")
		if strings.Contains(b.traces()[place], "planted") {
			t.Errorf("%s shows it before it is there", place)
		}
		ask[any](b, plant)
		if !strings.Contains(b.traces()[place], "planted") {
			t.Errorf("%s does not show it: %s", place, b.traces()[place])
		}
	}
}

// hostile is a text that acts if it is taken for markup: as text, attribute,
// address or script. It begins with its field's name, to be found again.
func hostile(field string) string {
	return field + `"'></title></textarea><script>hacked()</script><img src=x onerror=hacked()><svg onload=hacked()>` +
		`<a href="javascript:hacked()">{{.}}</a>`
}

// intruders are elements that no page of the console has.
const intruders = `[...document.querySelectorAll("script:not([src^='/console/assets/']), img:not([src^='/console/assets/']), " +
	"svg:not(.bar, .chart, .bars, .share, .spark), iframe, object, embed, base, style, textarea[onload], [onerror], [onload], [href^='javascript:' i]")].map((e) => e.outerHTML)`

// All entered texts stay texts on every page: nothing of them becomes part of
// the page or runs, and nothing even tries to, which the policy would report.
func TestHostileTexts(t *testing.T) {
	in := newInstallation(t)
	say := hostileTexts()
	w := in.furnish(t, say)
	b := openTab(t, startChromium(t, in.origin), in.origin)
	call(b, emulation.SetUserAgentOverride, emulation.SetUserAgentOverrideParams{UserAgent: hostile("browser")})
	b.signIn(w.email, w.password)
	w.passkey = b.firstPasskey(hostile("passkey"))
	var shown strings.Builder
	for _, page := range in.pages(t, w) {
		shown.WriteString(b.mustBeText(page.path))
	}
	for _, search := range []string{"/console/logs?environment=", "/console/logs?q=", "/console/errors?q=", "/console/settings/audit?target="} {
		shown.WriteString(b.mustBeText(search + url.QueryEscape(hostile("words"))))
	}
	for _, form := range refused() {
		b.open("/console")
		b.submit(form)
		shown.WriteString(b.textOf(form.path))
	}
	for _, text := range append(say.all(), typed()...) {
		if !strings.Contains(shown.String(), text) {
			t.Errorf("no page shows this, so nothing is proved of it: %s", text)
		}
	}
}

// mustBeText opens a page, and returns all its texts, those in fields
// and tips included.
func (b *tab) mustBeText(path string) string {
	b.t.Helper()
	b.open(path)
	b.await("document.querySelector('main')")
	return b.textOf(path)
}

// textOf is mustBeText for the open page.
func (b *tab) textOf(where string) string {
	b.t.Helper()
	for _, intruder := range ask[[]string](b, intruders) {
		b.t.Errorf("%s: a text became part of the page: %s", where, intruder)
	}
	b.blameless(where)
	return ask[string](b, `document.body.textContent + [...document.querySelectorAll("input, [title]")].map((e) => e.value ?? e.title).join("\n")`)
}

// hostileTexts are hostile in every field.
func hostileTexts() texts {
	return texts{
		organization: hostile("organization"), member: hostile("member"), project: hostile("project"), key: hostile("key"),
		token: hostile("token"), reason: hostile("reason"), message: hostile("message"), environment: hostile("environment"), errorType: hostile("error type"),
		errorMessage: hostile("error message"), call: hostile("call"),
		search: `search"'></title><script>hacked()</script><img src=x onerror=hacked()>{{.}}`,
		hook:   plainTexts.hook, email: plainTexts.email, invited: plainTexts.invited,
	}
}

// refused are forms that are shown again with the entered texts.
func refused() []form {
	const settings = "/console/settings/"
	stranger := map[string]string{"code": hostile("code"), "name": hostile("own name"), "organization": hostile("founded"), "email": hostile("e-mail")}
	return []form{
		{"/console/welcome", stranger}, {"/console/join", stranger}, {"/console/reset", stranger}, {"/console/sign-in", stranger},
		{settings + "members/invitations", map[string]string{"email": hostile("e-mail"), "role": "viewer"}},
		{settings + "service-tokens", map[string]string{"name": hostile("token")}},
	}
}

// typed are the texts entered in the browser, or by it.
func typed() (all []string) {
	for _, field := range []string{"words", "browser", "passkey", "code", "own name", "founded", "e-mail"} {
		all = append(all, hostile(field))
	}
	return all
}

// all are those that some page shows unchanged; a call is shown
// in another form.
func (s texts) all() []string {
	return []string{s.organization, s.member, s.project, s.key, s.token, s.reason, s.message, s.environment, s.errorType, s.errorMessage, s.search}
}

// Without scripts a person still gets from the sign-in to a key, and sees
// each way to send the first log; only what needs a script is not offered.
func TestWithoutScripts(t *testing.T) {
	in := newInstallation(t)
	in.addOwner(t, "Acme", "Ada Owner", "ada@acme.example", ownerPassword)
	b := openTab(t, startChromium(t, in.origin), in.origin)
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	b.signIn("ada@acme.example", ownerPassword)
	b.createProject("Checkout")
	b.leave("a", "API Keys", "API Keys")
	b.leave("a", "Create New API Key", "Create New API Key")
	b.fill("Name", "pods in Frankfurt")
	b.leave("button", "Create key", "Save your new API key now")
	if key := ask[string](b, `document.getElementById("secret").innerText`); !strings.HasPrefix(key, "weir_") {
		t.Errorf("the key is not shown: %q", key)
	}
	b.mustShowOnly("curl")
	b.reach("input", "curl")
	b.do(chromedp.KeyEvent(kb.ArrowRight))
	b.mustShowOnly("python")
	if buttons := ask[[]string](b, `[...document.querySelectorAll("main button")].filter((e) => e.checkVisibility()).map((e) => e.innerText)`); len(buttons) > 0 {
		t.Errorf("buttons that do nothing: %q", buttons)
	}
	b.leave("a", "Check again", "API key pods in Frankfurt")
	b.awaitText("Waiting for the first event")
	b.blameless("without scripts")
}

// mustShowOnly checks that one of the ways to send the first log is shown.
func (b *tab) mustShowOnly(want string) {
	b.t.Helper()
	shown := ask[[]string](b, `[...document.querySelectorAll(".variants pre")].filter((e) => e.checkVisibility()).map((e) => e.id)`)
	if len(shown) != 1 || shown[0] != want {
		b.t.Errorf("%q are shown, want %s", shown, want)
	}
}

// An offer is what a member finds in the settings: the linked pages,
// and the forms that change something, by their addresses.
type offer struct{ pages, forms map[string]bool }

const (
	settingsPath = "/console/settings/"
	accountPath  = settingsPath + "account" // everybody's own
)

// linked returns the addresses of the settings' pages that the page
// links to, without files and parts of pages.
const linked = `[...document.querySelectorAll("a[href^='/console/settings/']:not([download])")].map((e) => new URL(e.href).pathname)`

// sent returns the addresses of the page's forms that change something;
// to sign out changes nothing here.
const sent = `[...document.querySelectorAll("form[method=post]:not([action='/console/sign-out'])")].map((e) => new URL(e.action).pathname)`

// explore follows every link through the settings, from the given
// addresses. visit is called for each page, with its status.
func (b *tab) explore(from []string, visit func(path string, status int)) offer {
	b.t.Helper()
	found := offer{map[string]bool{}, map[string]bool{}}
	for len(from) > 0 {
		path := from[0]
		from = from[1:]
		if found.pages[path] {
			continue
		}
		found.pages[path] = true
		visit(path, b.open(path))
		from = append(from, ask[[]string](b, linked)...)
		for _, action := range ask[[]string](b, sent) {
			if !strings.HasPrefix(action, accountPath) {
				found.forms[action] = true
			}
		}
	}
	return found
}

// offered returns all that the settings offer to a member.
func (b *tab) offered() offer {
	b.t.Helper()
	return b.explore([]string{settingsPath + "organization"}, func(path string, status int) {
		if status != http.StatusOK {
			b.t.Errorf("a link leads to %s, which is answered with %d", path, status)
		}
	})
}

// deeds are parts of addresses that viewers don't get: the story offers
// each of them to its owner.
var deeds = []string{
	"/api-keys/new", "/rotate", "/edit", "/revoke", "/projects/", "/members/invitations", "/remove", "/reset", "/resend", "/service-tokens",
	"/service-tokens/new", "/security", "/audit",
}

// mayOnlyLook checks that a viewer may do nothing of what an owner is
// offered: no page shows it, and its address and its form are answered
// by a page with the reason.
func (b *tab) mayOnlyLook(owners offer) {
	b.t.Helper()
	own := b.offered()
	for _, path := range []string{"/console/logs", "/console/errors", "/console/usage", settingsPath + "api-keys", settingsPath + "members"} {
		if status := b.open(path); status != http.StatusOK {
			b.t.Errorf("a viewer is answered with %d at %s, want 200", status, path)
		}
	}
	for form := range own.forms {
		b.t.Errorf("a viewer is shown a form that is sent to %s", form)
	}
	refused := b.typeIn(owners, own)
	for _, deed := range deeds {
		if !slices.ContainsFunc(refused, func(path string) bool { return strings.Contains(path, deed) }) {
			b.t.Errorf("no address with %s was refused, so nothing is proved of it: %q", deed, refused)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(owners.forms)) {
		b.open(settingsPath + "organization")
		b.submit(form{path, map[string]string{"form": "x"}})
		b.isRefused("a form sent to " + path)
	}
}

// typeIn opens the pages that only an owner is offered, and
// returns their addresses.
func (b *tab) typeIn(owners, own offer) (refused []string) {
	b.t.Helper()
	for _, path := range slices.Sorted(maps.Keys(owners.pages)) {
		if own.pages[path] || strings.HasPrefix(path, accountPath) {
			continue
		}
		if status := b.open(path); status != http.StatusForbidden {
			b.t.Errorf("a viewer who types %s is answered with %d, want 403", path, status)
		}
		b.isRefused(path)
		refused = append(refused, path)
	}
	return refused
}

// isRefused checks that the page says what the reader may not do, in
// which role, and whom to ask.
func (b *tab) isRefused(what string) {
	b.t.Helper()
	text := ask[string](b, "document.querySelector('main').innerText")
	if !strings.HasPrefix(text, "You may not do this") || !strings.Contains(text, "Your role here is viewer") || !strings.Contains(text, "Ask") {
		b.t.Errorf("%s: it is not explained why a viewer may not do this: %s", what, text)
	}
}
