//go:build browser

package browser

import (
	"fmt"
	"strings"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// reached names the focused element, as screen readers do.
const reached = `(() => {
	const e = document.activeElement;
	if (!e || e === document.body) return "";
	const label = e.labels?.[0]?.innerText || e.getAttribute("aria-label") || e.innerText || e.value || "";
	return e.tagName.toLowerCase() + " " + label.replace(/\s+/g, " ").trim();
})()`

// maxStops exceeds the number of stops on any page.
const maxStops = 150

// reach presses Tab until the focused element's name begins with name;
// kind is the element's, such as "a" or "input".
func (b *tab) reach(kind, name string) {
	b.t.Helper()
	var seen []string
	for range maxStops {
		at := ask[string](b, reached)
		if strings.HasPrefix(at, kind+" "+name) {
			b.mustShowFocus(at)
			return
		}
		seen = append(seen, at)
		b.do(chromedp.KeyEvent(kb.Tab))
	}
	b.t.Fatalf("no way by Tab to %s %q; there are:\n%s\n%s", kind, name, strings.Join(seen[:min(len(seen), 40)], "\n"), b.describe())
}

// mustShowFocus fails if the focus is not visible.
func (b *tab) mustShowFocus(at string) {
	b.t.Helper()
	if ask[string](b, `getComputedStyle(document.activeElement).outlineStyle`) == "none" {
		b.t.Errorf("nothing shows that %q has the focus: %s", at, b.describe())
	}
}

// press focuses a link or button and presses Enter.
func (b *tab) press(kind, name string) {
	b.t.Helper()
	b.reach(kind, name)
	b.do(chromedp.KeyEvent(kb.Enter))
}

// leave is press for what leads to another page, whose heading is
// title; it may be the same page again.
func (b *tab) leave(kind, name, title string) {
	b.t.Helper()
	b.reach(kind, name)
	ask[bool](b, `window.left = true`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.await(fmt.Sprintf("!window.left && document.querySelector('h1')?.innerText === %q", title))
}

// fill focuses a field and types; the former text is replaced.
func (b *tab) fill(label, text string) {
	b.t.Helper()
	b.reach("input", label)
	b.do(chromedp.KeyEvent("a", chromedp.KeyModifiers(kb.ModifierCtrl)), chromedp.KeyEvent(kb.Delete), chromedp.KeyEvent(text))
}

// choose focuses a choice and types the beginning of one of its texts.
func (b *tab) choose(label, text string) {
	b.t.Helper()
	b.reach("select", label)
	b.do(chromedp.KeyEvent(text))
	if chosen := ask[string](b, `document.activeElement.selectedOptions[0].text`); !strings.HasPrefix(chosen, text) {
		b.t.Fatalf("typing %q into %q chooses %q", text, label, chosen)
	}
}

// clipboard returns the last copied text.
func (b *tab) clipboard() string {
	b.t.Helper()
	return ask[string](b, `navigator.clipboard.readText()`)
}
