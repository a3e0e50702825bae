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
	in.addOwner(t, "Acme", "Ada Owner", "ada@acme.example", "a long enough password")

	owner.signIn("ada@acme.example", "a long enough password")
	owner.createProject("Checkout")
	key := owner.createKey("pods in Frankfurt", "Staging")
	in.send(t, key, entry{Level: "info", Message: "hello from the story"})
	owner.blameless("the story")
}

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
	b.leave("a", "Settings", "Projects")
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
