//go:build browser

package browser

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/weirlog/weir/deploy/client"
)

// By keyboard only, a person gets from a new installation's link to the
// first log, and through a key's whole life. An invited viewer sees it
// and may change nothing. The audit log has all of it, and no browser
// keeps a secret.
func TestStory(t *testing.T) {
	in := newInstallation(t)
	chromium := startChromium(t, in.origin)
	owner := openTab(t, chromium, in.origin)
	owner.found(in.ownerLink(t))
	owner.plugAuthenticator()
	owner.addPasskey("a telephone")
	owner.signOut()
	owner.signInByPasskey()
	owner.createProject("Checkout")
	key := owner.createKey("pods in Frankfurt", "Staging")
	in.send(t, key, entry{Level: "info", Message: "hello from the story"})
	owner.await(`document.querySelector(".awaited[data-state=done]")`) // the first event turns green
	next := owner.rotateKey("pods in Frankfurt", "7 days")
	in.send(t, next, entry{Level: "info", Message: "hello with the new key"})
	in.send(t, key, entry{Level: "info", Message: "hello with the old key"})
	owner.seeUseSinceRotation()
	owner.revokeKey(in, key)
	link := owner.invite("vera@acme.example", "Viewer")
	owner.invite("dora@acme.example", "Developer") // she does not come: her invitation stays open

	viewer := openTab(t, chromium, in.origin)
	viewer.join(link, "Vera Viewer", "vera@acme.example")
	viewer.mayOnlyLook(owner.offered())
	viewer.blameless("the viewer's story")
	owner.readAudit(
		"Organization created: Acme", "Member added: Ada Owner", "Passkey registered: a telephone", "Project created: Checkout",
		"API key issued: pods in Frankfurt", "API key rotated: pods in Frankfurt", "API key revoked: pods in Frankfurt",
		"Invitation made: vera@acme.example", "Invitation accepted: vera@acme.example", "Member added: Vera Viewer",
	)
	owner.blameless("the story")
	secrets := map[string]string{
		"the first owner's code": codeOf(in.ownerLink(t)), "an invitation's code": codeOf(link), "a key": key, "a key that took its place": next,
		"the owner's password": ownerPassword, "the viewer's password": viewerPassword,
	}
	owner.remembersNone(secrets)
	viewer.remembersNone(secrets)
}

// rotateKey replaces the key called name, with both valid meanwhile,
// and returns the new one.
func (b *tab) rotateKey(name, overlap string) string {
	b.t.Helper()
	b.leave("a", "I have saved it", "API Keys")
	b.leave("a", "Rotate "+name, "Rotate an API key")
	b.choose("The old key", overlap)
	b.leave("button", "Rotate", "Save your new API key now")
	b.press("button", "Copy key")
	b.awaitText("Copied")
	return b.clipboard()
}

// seeUseSinceRotation goes from the new key to the old one, and sees
// that it is still used.
func (b *tab) seeUseSinceRotation() {
	b.t.Helper()
	b.leave("a", "See who still uses it", "API key pods in Frankfurt")
	b.repeat("since the rotation", func() { b.do(chromedp.Reload()) })
}

// revokeKey revokes the key whose page is open.
func (b *tab) revokeKey(in installation, key string) {
	b.t.Helper()
	b.leave("a", "Revoke", "Revoke an API key")
	b.fill("Reason", "nobody uses it any more")
	b.leave("button", "Revoke key", "API Keys")
	b.awaitText("The API key was revoked")
	_, err := in.api.Post(b.t.Context(), key, client.Batch{Body: []byte(`{}`)})
	var problem *client.Problem
	if !errors.As(err, &problem) || problem.Status != http.StatusUnauthorized {
		b.t.Errorf("the revoked key is answered with %v, want 401", err)
	}
}

// readAudit finds lines in the audit log.
func (b *tab) readAudit(lines ...string) {
	b.t.Helper()
	b.leave("a", "Audit log", "Audit log")
	for _, line := range lines {
		if !b.shows(line) {
			b.t.Errorf("the audit lacks %q:\n%s", line, b.describe())
		}
	}
}

func (b *tab) signIn(email, password string) {
	b.t.Helper()
	b.open("/console")
	b.awaitPage("Sign in")
	b.fill("E-mail", email)
	b.fill("Password", password)
	b.enter("Sign in")
}

func (b *tab) signOut() {
	b.t.Helper()
	b.press("summary", "Account")
	b.leave("button", "Sign out", "Sign in")
}

func (b *tab) createProject(name string) {
	b.t.Helper()
	b.leave("a", "Settings", "Organization")
	b.leave("a", "Projects", "Projects")
	b.fill("Name", " ")
	b.leave("button", "Create project", "Projects")
	b.await(`document.activeElement.matches("input[name=name][aria-invalid=true]")`) // the focus goes to the fault
	b.fill("Name", name)
	b.leave("button", "Create project", "Projects")
	b.awaitText(name)
}

// createKey creates a key for the only project, copies it and returns
// the copied text.
func (b *tab) createKey(name, environment string) string {
	b.t.Helper()
	b.leave("a", "API Keys", "API Keys")
	b.leave("a", "Create New API Key", "Create New API Key")
	b.fill("Name", name)
	b.choose("Environment", environment)
	b.leave("button", "Create key", "Save your new API key now")
	b.press("button", "Copy key")
	b.awaitText("Copied")
	key := b.clipboard()
	if !strings.HasPrefix(key, "weir_") || len(key) != len("weir_")+48 {
		b.t.Fatalf("copied %d characters that are no key", len(key))
	}
	return key
}

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

// enter presses a button, and waits for the first page of whom it lets in.
func (b *tab) enter(button string) {
	b.t.Helper()
	b.reach("button", button)
	ask[bool](b, `window.left = true`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.await("!window.left && document.querySelector('header.top')")
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

// plugAuthenticator gives the tab's person a device that stores
// passkeys and verifies its owner, such as a phone.
func (b *tab) plugAuthenticator() {
	b.t.Helper()
	call(b, webauthn.Enable, webauthn.EnableParams{})
	call(b, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{Options: &webauthn.VirtualAuthenticatorOptions{
		Protocol: webauthn.AuthenticatorProtocolCtap2, Transport: webauthn.AuthenticatorTransportInternal,
		HasResidentKey: true, HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true,
	}})
}

// addPasskey adds a passkey in the settings of the person's account.
func (b *tab) addPasskey(name string) {
	b.t.Helper()
	b.open("/console/settings/account")
	b.leave("a", "Add a passkey", "Add a passkey")
	b.await(`!document.querySelector("form[data-passkey]").hidden`)
	b.fill("Name", name)
	b.leave("button", "Add passkey", "Your account")
	b.awaitText(name)
}

// signInByPasskey signs in without typing.
func (b *tab) signInByPasskey() {
	b.t.Helper()
	b.await(`!document.querySelector("form[data-passkey]").hidden`)
	b.enter("Sign in with a passkey")
}

// firstPasskey adds a person's first passkey, and returns its id.
func (b *tab) firstPasskey(name string) string {
	b.t.Helper()
	b.plugAuthenticator()
	b.addPasskey(name)
	return ask[string](b, `document.querySelector("a[href$='/remove']").href.split("/").at(-2)`)
}

// By keyboard only, a person gets from an error to the logs around it,
// and chooses another time in the browser's own field.
func TestLogsAroundAnError(t *testing.T) {
	in := newInstallation(t)
	w := in.furnish(t, plainTexts)
	b := openTab(t, startChromium(t, in.origin), in.origin)
	b.signIn(w.email, w.password)
	b.open("/console/errors/" + w.group)
	b.leave("a", "Logs before it", "Logs")
	b.awaitText("checkout failed")
	b.check("logs around an error")
	b.leave("a", "Clear all", "Logs")
	b.awaitText("order 4711 was paid")
	b.press("summary", "Filters")
	b.enterTime("From (UTC)", "01022031\t0304PM", "2031-01-02T15:04")
	b.leave("button", "Search", "Logs")
	b.awaitText("No entries in this time")
	if from := ask[string](b, `document.getElementById("field-from").value`); from[:len("2031-01-02T15:04")] != "2031-01-02T15:04" {
		t.Errorf("the field keeps %q", from)
	}
	b.blameless("logs around an error")
}

// By keyboard only, a person looks for a fault: with a completed field, by
// a value beside the list, and by what stands in an entry.
func TestSearch(t *testing.T) {
	in := newInstallation(t)
	w := in.furnish(t, plainTexts)
	b := openTab(t, startChromium(t, in.origin), in.origin)
	b.signIn(w.email, w.password)
	b.open("/console/logs")
	b.awaitText("order 4711 was paid")
	b.do(chromedp.KeyEvent("/"))
	b.await(`document.activeElement.id === "field-q"`)
	b.fill("Search", "lev") // without the slash, which this driver types all the same
	b.do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent("wa"), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Tab))
	b.await(`document.activeElement.value === "level:warn "`)
	b.check("completing a search")
	b.leave("button", "Search", "Logs")
	b.awaitText("the card reader is slow")
	if b.shows("order 4711 was paid") {
		t.Error("a search for a level shows another")
	}
	b.open("/console/logs")
	b.do(chromedp.KeyEvent("j"), chromedp.KeyEvent(kb.Enter))
	b.awaitText("Around it")
	b.check("an open entry")
	b.leave("button", "Without these", "Logs")
	b.await(`document.getElementById("field-q").value.startsWith("-")`)
	b.open("/console/logs")
	b.leave("a", "+ column level", "Logs")
	b.await(`document.querySelector(".entries .column")?.textContent.length > 0`)
	b.check("a column")
	b.open("/console/logs")
	last := ask[string](b, `[...document.querySelectorAll(".histogram a:has(rect:nth-child(3))")].at(-1).href.baseVal`)
	b.open(last)
	b.awaitText("order 4711 was paid")
	b.blameless("a search")
}

// enterTime types into a date and time field, whose parts are in the
// order of American English.
func (b *tab) enterTime(label, keys, want string) {
	b.t.Helper()
	b.reach("input", label)
	b.do(chromedp.KeyEvent(keys))
	b.await(`document.activeElement.value.startsWith("` + want + `")`)
}
