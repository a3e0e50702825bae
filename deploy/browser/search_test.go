//go:build browser

package browser

import (
	"testing"

	"github.com/chromedp/chromedp"
)

// By keyboard only, a person gets from an error to the logs around it,
// and chooses another time in the browser's own field.
func TestLogsAroundAnError(t *testing.T) {
	in := newInstallation(t)
	w := in.furnish(t, plainTexts)
	b := openTab(t, startChromium(t, in.origin), in.origin)
	b.signIn(w.email, w.password)
	b.open("/console/errors/" + w.group)
	b.leave("a", "Logs around it", "Logs")
	b.awaitText("checkout failed")
	b.check("logs around an error")
	b.leave("a", "Last hour", "Logs")
	b.awaitText("order 4711 was paid")
	b.enterTime("From (UTC)", "01022031\t0304PM", "2031-01-02T15:04")
	b.leave("button", "Search", "Logs")
	b.awaitText("No entry matches")
	if from := ask[string](b, `document.getElementById("field-from").value`); from[:len("2031-01-02T15:04")] != "2031-01-02T15:04" {
		t.Errorf("the field keeps %q", from)
	}
	b.blameless("logs around an error")
}

// enterTime types into a date and time field, whose parts are in the
// order of American English.
func (b *tab) enterTime(label, keys, want string) {
	b.t.Helper()
	b.reach("input", label)
	b.do(chromedp.KeyEvent(keys))
	b.await(`document.activeElement.value.startsWith("` + want + `")`)
}
