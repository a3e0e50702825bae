//go:build browser

package browser

import (
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
)

// hostile is a text that acts if it is taken for markup: as text, attribute,
// address or script. It begins with its field's name, to be found again.
func hostile(field string) string {
	return field + `"'></title></textarea><script>hacked()</script><img src=x onerror=hacked()><svg onload=hacked()>` +
		`<a href="javascript:hacked()">{{.}}</a>`
}

// intruders are elements that no page of the console has.
const intruders = `[...document.querySelectorAll("script:not([src^='/console/assets/']), img:not([src^='/console/assets/']), " +
	"svg:not(.bar, .chart), iframe, object, embed, base, style, textarea[onload], [onerror], [onload], [href^='javascript:' i]")].map((e) => e.outerHTML)`

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
		hook: plainTexts.hook, email: plainTexts.email, invited: plainTexts.invited,
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
	return []string{s.organization, s.member, s.project, s.key, s.token, s.reason, s.message, s.environment, s.errorType, s.errorMessage}
}
