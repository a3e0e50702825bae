//go:build browser

package browser

import (
	"testing"

	"github.com/chromedp/chromedp"
)

// By keyboard only, a person resolves an error from the list, sees it open
// again when it happens, ignores it for a while and writes why.
func TestErrorsAreDecidedAbout(t *testing.T) {
	in := newInstallation(t)
	w := in.furnish(t, plainTexts)
	b := openTab(t, startChromium(t, in.origin), in.origin)
	b.signIn(w.email, w.password)
	b.open("/console/errors")
	b.awaitText("Cannot read properties of undefined")
	b.do(chromedp.KeyEvent("?"))
	b.await(`document.querySelector("dialog").open && document.querySelector("dialog").innerText.includes("Assign to me")`)
	b.do(chromedp.KeyEvent("e")) // which does nothing here
	b.check("the keys of a list")
	b.do(chromedp.KeyEvent("?"))
	b.await(`!document.querySelector("dialog").open`)
	b.do(chromedp.KeyEvent("j"))
	b.await(`document.activeElement.matches("td a")`)
	b.do(chromedp.KeyEvent("x"))
	b.await(`document.querySelectorAll("td input:checked").length === 1`)
	b.check("an error is chosen")
	ask[bool](b, `window.left = true`)
	b.do(chromedp.KeyEvent("e"))
	b.await(`!window.left && document.querySelector(".flash")?.innerText.startsWith("They are resolved")`)
	b.awaitText("Nothing is unresolved")
	b.check("all errors are resolved")

	in.send(t, w.key.Key, failed("2.14.0"))
	b.repeat("regressed", func() { b.open("/console/errors") })
	b.check("a regressed error")
	b.open("/console/errors/" + w.group)
	b.awaitText("It happened in 2.14.0 in prod after it was resolved.")
	b.look("the trace comes after actions, numbers and chart", func(look string) {
		if order := ask[bool](b, inOrder); !order {
			b.t.Errorf("%s: the parts of the page stand in another order", look)
		}
	})
	b.do(chromedp.KeyEvent("?"))
	b.await(`document.querySelector("dialog").open`)
	b.do(chromedp.KeyEvent("\u001b"))
	b.await(`!document.querySelector("dialog").open`)
	b.check("a regressed group")
	b.leave("button", "In the next release", "TypeError: Cannot read properties of undefined (reading 'total')")
	b.awaitText("resolved in the release after 2.14.0")
	b.press("summary", "Ignore for a time, resolve in a release, assign or note")
	b.check("what can be decided about a group")
	b.choose("Ignore", "until it happens again")
	b.leave("button", "Ignore until then", "TypeError: Cannot read properties of undefined (reading 'total')")
	b.awaitText("ignored until it happens again")
	in.send(t, w.key.Key, failed("2.14.0"))
	b.repeat("It happened once since it was ignored.", func() { b.open("/console/errors/" + w.group) })
	b.blameless("deciding about errors")
}

// failed is an error of the world's group in a release.
func failed(release string) entry {
	return entry{Level: "error", Message: plainTexts.message, Environment: "prod", Metadata: map[string]any{"release": release}, Error: &failure{
		Type: plainTexts.errorType, Message: plainTexts.errorMessage,
		Frames: []string{plainTexts.call, "at checkout (/srv/shop/src/checkout.js:88:20)", "at next (/srv/shop/node_modules/express/router.js:280:10)"},
	}}
}

// inOrder reports whether the parts of a group's page follow one another; what happened to it stands beside
// them where there is room.
const inOrder = `["form.decide", "main dl.facts", ".histogram", "#sample .frames"].concat(innerWidth < 960 ? ["#activity"] : [])
	.map((which) => document.querySelector(which).getBoundingClientRect().top).every((top, i, all) => !i || all[i - 1] < top)`
