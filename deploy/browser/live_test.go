//go:build browser

package browser

import "testing"

// By keyboard only, a person watches what comes, stops for a while and goes
// on. What comes is text, whatever it says.
func TestLive(t *testing.T) {
	in := newInstallation(t)
	w := in.furnish(t, plainTexts)
	b := openTab(t, startChromium(t, in.origin), in.origin)
	b.signIn(w.email, w.password)
	b.open("/console/logs?level=warn&level=info")
	b.press("button", "Live")
	b.await(`document.querySelector("[data-live] button").textContent === "Pause"`)
	send := func(level, message string) { in.send(t, w.key.Key, entry{Level: level, Message: message}) }
	b.repeat("the first <b>live</b> entry", func() { send("warn", "the first <b>live</b> entry") })
	b.check("logs as they come")
	b.press("button", "Pause")
	b.press("button", "Resume")
	b.repeat("after the pause", func() { send("error", "another level"); send("warn", "after the pause") })
	if b.shows("another level") {
		t.Errorf("what was not asked for is shown:\n%s", b.describe())
	}
	b.blameless("logs as they come")
}
