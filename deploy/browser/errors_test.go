//go:build browser

package browser

import (
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/testenv"
)

// By keyboard only, a person takes an error on, resolves it in the next release, sees it
// regress by a deploy, ignores it until it happens 100 times more, merges another one into
// it and splits that off again, tries a rule and saves it. A source map comes late. The
// audit has all of it. Alerts are in TestAlertsStory.
func TestErrorsStory(t *testing.T) {
	in := newInstallation(t)
	w := in.furnish(t, plainTexts)
	in.addMember(t, w.organization, "Bob Field", "developer", "field@acme.example", ownerPassword)
	b := openTab(t, startChromium(t, in.origin), in.origin)
	b.signIn(w.email, w.password)
	const title = "TypeError: Cannot read properties of undefined (reading 'total')"
	group := "/console/errors/" + w.group
	b.open(group)
	b.leave("button", "Assign to me", title)
	b.awaitText("You look after it now.")

	in.send(t, w.key.Key, entry{Level: "info", Message: "cart 7 was opened", Metadata: map[string]any{"trace_id": plainTexts.trace}})
	b.repeat("Log entries before and after it: on the same trace", func() { b.open(group) })
	b.press("summary", "Raw trace, as it was sent")
	b.awaitText(plainTexts.call + "\nat checkout (/srv/shop/src/checkout.js:88:20)\n")
	b.awaitText("metadata.trace_id")
	b.check("an error and its log entry")
	b.repeat("cart 7 was opened", func() {
		b.open(group)
		b.leave("a", "on the same trace", "Logs")
	})
	if !b.shows("checkout failed") || b.shows("the card reader is slow") {
		t.Errorf("the trace:\n%s", b.describe())
	}
	b.repeat("Log entries with this error, the newest first.", func() {
		b.open(group)
		b.leave("a", "All occurrences", title)
	})
	b.check("all occurrences of an error")
	b.open(group)

	in.send(t, w.key.Key, failed("2.14.0"))
	b.repeat("In the next release", func() { b.open(group) })
	b.leave("button", "In the next release", title)
	b.awaitText("resolved in the release after 2.14.0")
	in.send(t, w.key.Key, failed("2.15.0"))
	b.repeat("It happened in 2.15.0 in prod after it was resolved in the next release.", func() { b.open(group) })

	b.press("summary", "Ignore for a time, resolve in a release, assign or note")
	b.choose("Ignore", "until it happens 100 times")
	b.leave("button", "Ignore until then", title)
	b.awaitText("ignored until it happens 100 times")
	in.send(t, w.key.Key, slices.Repeat([]entry{failed("2.15.0")}, 99)...)
	b.repeat("102 times", func() { b.open(group) })
	if !b.shows("ignored until it happens 100 times") {
		t.Errorf("99 more errors have opened it:\n%s", b.describe())
	}
	in.send(t, w.key.Key, failed("2.15.0"))
	b.repeat("It happened 100 times since it was ignored.", func() { b.open(group) })
	b.check("an error that is no longer ignored")

	b.note("@bob Field and @nobody: whose is this?", title)
	b.awaitText("Nobody was notified for @nobody")
	b.await(`document.querySelector(".activity .badge.accent")?.textContent === "@Bob Field"`)

	built := entry{Level: "error", Message: "checkout failed", Environment: "prod", Metadata: map[string]any{"release": "2.15.0"}, Error: &failure{
		Type: "TypeError", Message: "cart is null",
		Frames: []string{"at loadCart (https://shop.example/static/app.js:1:10)", "at payOrder (https://shop.example/static/app.js:1:30)"},
	}}
	elsewhere := built
	elsewhere.Error = &failure{Type: "TypeError", Message: "cart is null",
		Frames: []string{built.Error.Frames[0], "at showBasket (https://shop.example/static/app.js:1:50)"}}
	in.send(t, w.key.Key, elsewhere, built)
	b.repeat("cart is null", func() { b.open("/console/errors?sort=first_seen") })
	b.do(chromedp.KeyEvent("j"), chromedp.KeyEvent("x"), chromedp.KeyEvent("j"), chromedp.KeyEvent("x"))
	b.await(`document.querySelectorAll("td input:checked").length === 2`)
	b.leave("button", "Merge", "Errors")
	b.awaitText("They are one group now")
	b.open(group)
	b.awaitText("Merged from 1 other group")
	b.check("a merged error")

	b.leave("button", "Split off errors like this one", title)
	b.awaitText("From now on errors like it are a group of their own")
	b.awaitText("split errors off")

	sources := `{"version":3,"sources":["src/pay.ts"],"names":["charge"],"mappings":"AAAAA"}`
	_, err := in.api.UploadSourceMap(t.Context(), w.key.Key, w.project, client.SourceMap{Release: "2.15.0", Name: "~/static/app.js"}, []byte(sources))
	testenv.Must(t, err)
	b.repeat("src/pay.ts", func() { b.open(group) })
	b.check("a sample by a map that came late")

	b.leave("a", "Rules", "Rules")
	b.reach("textarea", "Rules, one a line")
	b.do(chromedp.KeyEvent("a", chromedp.KeyModifiers(kb.ModifierCtrl)), chromedp.KeyEvent(kb.Delete), chromedp.KeyEvent(`same "Trouble at the till" type:*Error`))
	b.leave("button", "Preview", "Rules")
	b.awaitText("What they would do")
	b.awaitText("Nothing is saved yet.")
	b.awaitText(`Key "pods in Frankfurt"`) // who set those before
	b.check("a rule that is tried")
	b.leave("button", "Save", "Rules")
	b.awaitText("in force")
	b.repeat("Trouble at the till", func() { // once the rule holds
		in.send(t, w.key.Key, built)
		b.open("/console/errors")
	})

	for _, line := range []string{"Error group assigned", "Error group resolved", "Error group ignored", "Error group merged", "Error group split", "Error group noted", "Error source map uploaded",
		"Error rules set", `added: same "Trouble at the till" type:*Error`} {
		b.repeat(line, func() { b.open("/console/settings/audit") })
	}
	b.check("errors in the audit")
	if log := ask[string](b, `document.querySelector("main").innerText`); strings.Contains(log, "Weir itself") {
		t.Errorf("the audit has what nobody decided:\n%s", log)
	}
	b.blameless("the story of errors")
}

// note writes a note on the page of an error.
func (b *tab) note(text, title string) {
	b.t.Helper()
	b.press("summary", "Ignore for a time, resolve in a release, assign or note")
	b.reach("textarea", "Note")
	begun, rest, _ := strings.Cut(text, "Field")
	b.do(chromedp.KeyEvent(begun), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Enter), chromedp.KeyEvent(rest)) // the name is completed
	b.leave("button", "Add note", title)
	b.awaitText("The note is kept.")
}
