//go:build browser

package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
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
