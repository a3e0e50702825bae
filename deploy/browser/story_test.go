//go:build browser

package browser

import (
	"strings"
	"testing"
)

// A person who never touches a mouse gets from the sign-in to the first log, and back out.
func TestStory(t *testing.T) {
	in := newInstallation(t)
	chromium := startChromium(t, in.origin)
	owner := openTab(t, chromium, in.origin)
	organization := in.addOwner(t, "Acme", "Ada Owner", "ada@acme.example", "a long enough password")

	owner.signIn("ada@acme.example", "a long enough password")
	owner.plugAuthenticator()
	owner.addPasskey("a telephone")
	owner.leave("button", "Sign out", "Sign in")
	owner.signInByPasskey()
	owner.createProject("Checkout")
	key := owner.createKey("pods in Frankfurt", "Staging")
	in.send(t, key, entry{Level: "info", Message: "hello from the story"})
	owner.blameless("the story")

	viewer := openTab(t, chromium, in.origin)
	in.addMember(t, organization, "Vera Viewer", "viewer", "vera@acme.example", "another long password")
	viewer.signIn("vera@acme.example", "another long password")
	viewer.mayOnlyLook(in)
	viewer.blameless("the viewer's story")
}

// mayOnlyLook goes to every page as a viewer: there is no form but those that search and sign out, and what is for others
// says so under its own address.
func (b *tab) mayOnlyLook(in installation) {
	b.t.Helper()
	for path, want := range map[string]int{
		"/console/logs": 200, "/console/errors": 200, "/console/usage": 200,
		"/console/settings/projects": 200, "/console/settings/api-keys": 200, "/console/settings/api-keys/new": 403,
		"/console/settings/service-tokens": 403, "/console/settings/security": 403,
	} {
		if status := b.open(path); status != want {
			b.t.Errorf("a viewer is answered with %d at %s, want %d", status, path, want)
		}
		for _, form := range ask[[]string](b, forms) {
			b.t.Errorf("a viewer has a form on %s: %s", path, form)
		}
	}
}

// forms are those that change something, but the one to sign out.
const forms = `[...document.querySelectorAll("form[method=post]:not([action='/console/sign-out']), a.button[href*=new]")].map((e) => e.outerHTML)`

// signIn signs in with a password.
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
	b.await(`document.activeElement.matches("input[name=name][aria-invalid=true]")`) // one goes on where the fault is
	b.fill("Name", name)
	b.leave("button", "Create project", "Projects")
	b.awaitText(name)
}

// createKey creates a key for the one project, copies it and returns what was copied.
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
