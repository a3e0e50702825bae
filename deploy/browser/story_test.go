//go:build browser

package browser

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

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
	owner.leave("button", "Sign out", "Sign in")
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
	b.leave("button", "Sign in", "Logs")
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
