//go:build browser

package browser

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/testenv"
)

// looks are the ways in which people look at a page.
var looks = []struct {
	name   string
	scheme string
	width  int64
}{
	{"light", "light", 1280},
	{"dark", "dark", 1280},
	{"phone", "light", 390},
}

// wideTables returns the names of tables that are partly out of sight.
const wideTables = `[...document.querySelectorAll(".scroll")].filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.getAttribute("aria-label"))`

// notPages are the console's addresses without a page, and why.
var notPages = map[string]string{
	"/console":                    "leads to the first page",
	"/console/session/renew":      "leads back to where the reader was going",
	"/console/settings":           "leads to the first page of the settings",
	"/console/logs/csv":           "a file",
	"/console/logs/ndjson":        "a file",
	"/console/settings/audit.csv": "a file",

	"/console/logs/overview":   "a part of the overview",
	"/console/errors/overview": "a part of the overview",
	"/console/usage/overview":  "a part of the overview",
	"/console/logs/entry":      "a part of the page of an error group",
	"/console/logs/entries":    "for the gateway, which makes a part of them",

	"/console/usage/organizations": "there is none but for who runs the installation: see TestOrganizations",

	"/console/usage/statements/{statement}":     "there is none before a period has ended: see TestBillingsStory",
	"/console/usage/statements/{statement}/csv": "a file",

	"/console/settings/api-keys/{id}/first-event": "one line, for a script",
	"/console/logs/tail":                          "events, for a script",
	"/console/assets/{version}/{name}":            "stylesheet, scripts and pictures",
}

// Every page of the console is readable and usable for everybody, in
// light, in dark and on a phone.
func TestPages(t *testing.T) {
	in := newInstallation(t)
	w := in.furnish(t, plainTexts)
	b := openTab(t, startChromium(t, in.origin), in.origin)
	b.signIn(w.email, w.password)
	w.passkey = b.firstPasskey("a telephone")
	for _, page := range in.pages(t, w) {
		b.inspect(page.pattern, page.path)
	}
	b.inspect("the API reference", "/docs")
	for name, form := range w.answers() {
		b.open("/console")
		b.submit(form)
		b.check(name)
	}
	b.open("/console")
	b.signOut()
	b.check("sign-in after signing out")
}

// An empty page says what it would show and how to get it.
func TestEmptyPages(t *testing.T) {
	in := newInstallation(t)
	in.addOwner(t, "Fresh", "Ada Owner", "ada@fresh.example", ownerPassword)
	b := openTab(t, startChromium(t, in.origin), in.origin)
	b.signIn("ada@fresh.example", ownerPassword)
	for _, path := range []string{"overview", "logs", "logs/rejected", "errors", "usage", "settings/projects", "settings/api-keys", "settings/api-keys/new",
		"settings/service-tokens", "settings/webhooks", "settings/members/invitations", "settings/account", "settings/audit?target=none"} {
		b.inspect("empty "+path, "/console/"+path)
	}
}

// Texts of maximal length, without a place to break them, stay
// within their page.
func TestLongTexts(t *testing.T) {
	in := newInstallation(t)
	w := in.furnish(t, longTexts())
	b := openTab(t, startChromium(t, in.origin), in.origin)
	b.signIn(w.email, w.password)
	w.passkey = b.firstPasskey(strings.Repeat("p", 200))
	for _, page := range in.pages(t, w) {
		b.open(page.path)
		b.await("document.querySelector('main')")
		b.fits("long " + page.pattern)
	}
}

// A place is a page of the console and one of its addresses.
type place struct{ pattern, path string }

// pages are all pages of a world.
func (in installation) pages(t *testing.T, w world) (places []place) {
	t.Helper()
	addresses := w.addresses()
	for _, pattern := range in.consolePages(t) {
		path := pattern
		if strings.ContainsAny(pattern, "{*") {
			path = addresses[pattern]
		}
		if path == "" {
			t.Errorf("%s: a page that this test can't find: give it an address in addresses, or a reason in notPages", pattern)
			continue
		}
		places = append(places, place{pattern, path})
	}
	return places
}

// A form is what a person submits.
type form struct {
	path   string
	fields map[string]string
}

// answers are the forms whose answer is a separate page, by name.
func (w world) answers() map[string]form {
	const settings = "/console/settings/"
	return map[string]form{
		"a new key":                      {settings + "api-keys", map[string]string{"name": "pods in Frankfurt", "project": w.project, "environment": "staging"}},
		"a key without a name":           {settings + "api-keys", map[string]string{"name": " ", "project": w.project, "environment": "staging", "ends": "date", "rate_per_minute": "0"}},
		"a rotated key":                  {settings + "api-keys/" + w.key.ID + "/rotate", map[string]string{"overlap_seconds": "86400"}},
		"a preview of rules":             {"/console/errors/rules", map[string]string{"project": w.project, "version": "1", "rules": `same "One" type:*`, "do": "preview"}},
		"a preview of rules for entries": {"/console/logs/rules", map[string]string{"project": w.project, "version": "0", "rules": "redact email\ndrop level:debug", "do": "preview"}},
		"a wrong rule for entries":       {"/console/logs/rules", map[string]string{"project": w.project, "version": "0", "rules": "drop", "do": "save"}},
		"a wrong rule":                   {"/console/errors/rules", map[string]string{"project": w.project, "version": "1", "rules": "own", "do": "save"}},
		"an invitation":                  {settings + "members/invitations", map[string]string{"email": "new@acme.example", "role": "viewer"}},
		"a link for a new password":      {settings + "members/" + w.member + "/reset", map[string]string{}},
		"a wrong password to confirm":    {"/console/confirm", map[string]string{"password": "wrong"}},
		"a service token without scopes": {settings + "service-tokens", map[string]string{"name": "invoicing"}},
		"a new service token":            {settings + "service-tokens", map[string]string{"name": "invoicing", "scopes": "billing:read"}},
		"a webhook that leads home":      {settings + "webhooks", map[string]string{"url": "https://10.0.0.1/"}},
		"a new webhook":                  {settings + "webhooks", map[string]string{"url": "https://hooks.invalid/new", "events": "quota.exhausted"}},
		"a rotated webhook":              {settings + "webhooks/" + w.webhook + "/rotate", map[string]string{}},
		"a project without a name":       {settings + "projects", map[string]string{"name": " "}},
		"nobody with this password":      {"/console/sign-in", map[string]string{"email": "ada@acme.example", "password": "wrong"}},
	}
}

// submit sends a form as a page of the console would, and waits for the answer.
func (b *tab) submit(f form) {
	b.t.Helper()
	fields, err := json.Marshal(f.fields)
	testenv.Must(b.t, err)
	ask[bool](b, fmt.Sprintf(`(() => {
		const form = document.body.appendChild(Object.assign(document.createElement("form"), {method: "post", action: %q}));
		for (const [name, value] of Object.entries(%s)) form.append(Object.assign(document.createElement("input"), {name, value}));
		return window.left = true;
	})()`, f.path, fields))
	ask[bool](b, `setTimeout(() => document.body.lastElementChild.submit()), true`)
	b.await(`!window.left && document.querySelector("main")`)
}

// consolePages are the patterns of all pages of the console.
func (in installation) consolePages(t *testing.T) (patterns []string) {
	t.Helper()
	routes, err := in.app.Routes()
	testenv.Must(t, err)
	for _, route := range routes {
		pattern, found := strings.CutPrefix(route, "GET ")
		if _, excused := notPages[pattern]; found && !excused && strings.HasPrefix(pattern, "/console") {
			patterns = append(patterns, pattern)
		}
	}
	if len(patterns) < 9 {
		t.Fatalf("the console has only %q", patterns)
	}
	return patterns
}

// inspect checks a page in every way.
func (b *tab) inspect(name, path string) {
	b.t.Helper()
	b.size(1280, 900)
	b.colors("light")
	b.open(path)
	b.await("document.querySelector('main')")
	b.check(name)
}

// check checks the open page in every way.
func (b *tab) check(name string) {
	b.t.Helper()
	loadAxe(b)
	b.look(name, func(look string) {
		for _, violation := range runAxe(b) {
			b.t.Errorf("%s, %s: %s", name, look, violation)
		}
	})
}

// fits checks in every way that the open page is fully visible.
func (b *tab) fits(name string) {
	b.t.Helper()
	b.look(name, func(string) {})
}

func (b *tab) look(name string, inspect func(look string)) {
	b.t.Helper()
	b.blameless(name)
	for _, look := range looks {
		b.size(look.width, 900)
		b.colors(look.scheme)
		b.await("true")
		inspect(look.name)
		if wide := ask[[]string](b, wideTables); len(wide) > 0 {
			b.t.Errorf("%s, %s: a part of these tables is out of sight (on a phone see class stack): %q", name, look.name, wide)
		}
		if over := ask[int](b, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
			b.t.Errorf("%s, %s: the page is %d pixels wider than the screen", name, look.name, over)
		}
		b.shoot(name + " " + look.name)
	}
	b.blameless(name)
}

// shoot stores a picture of the whole page in the folder of WEIR_SCREENSHOTS.
func (b *tab) shoot(name string) {
	b.t.Helper()
	folder := os.Getenv("WEIR_SCREENSHOTS")
	if folder == "" {
		return
	}
	testenv.Must(b.t, os.MkdirAll(folder, 0o755))
	file := strings.Trim(strings.NewReplacer("/console", "", "/", "_", " ", "_", "{", "", "}", "", "*", "none").Replace(name), "_") + ".png"
	testenv.Must(b.t, os.WriteFile(filepath.Join(folder, file), picture(b), 0o644))
}
