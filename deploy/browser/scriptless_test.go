//go:build browser

package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

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
	b.mustShowOnly("go")
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
