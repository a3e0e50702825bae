//go:build browser

package browser

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// An offer is what a member finds in the settings: the linked pages,
// and the forms that change something, by their addresses.
type offer struct{ pages, forms map[string]bool }

const (
	settingsPath = "/console/settings/"
	accountPath  = settingsPath + "account" // everybody's own
)

// linked returns the addresses of the settings' pages that the page
// links to, without files and parts of pages.
const linked = `[...document.querySelectorAll("a[href^='/console/settings/']:not([download])")].map((e) => new URL(e.href).pathname)`

// sent returns the addresses of the page's forms that change something;
// to sign out changes nothing here.
const sent = `[...document.querySelectorAll("form[method=post]:not([action='/console/sign-out'])")].map((e) => new URL(e.action).pathname)`

// explore follows every link through the settings, from the given
// addresses. visit is called for each page, with its status.
func (b *tab) explore(from []string, visit func(path string, status int)) offer {
	b.t.Helper()
	found := offer{map[string]bool{}, map[string]bool{}}
	for len(from) > 0 {
		path := from[0]
		from = from[1:]
		if found.pages[path] {
			continue
		}
		found.pages[path] = true
		visit(path, b.open(path))
		from = append(from, ask[[]string](b, linked)...)
		for _, action := range ask[[]string](b, sent) {
			if !strings.HasPrefix(action, accountPath) {
				found.forms[action] = true
			}
		}
	}
	return found
}

// offered returns all that the settings offer to a member.
func (b *tab) offered() offer {
	b.t.Helper()
	return b.explore([]string{settingsPath + "organization"}, func(path string, status int) {
		if status != http.StatusOK {
			b.t.Errorf("a link leads to %s, which is answered with %d", path, status)
		}
	})
}

// deeds are parts of addresses that viewers don't get: the story offers
// each of them to its owner.
var deeds = []string{
	"/api-keys/new", "/rotate", "/edit", "/revoke", "/projects/", "/members/invitations", "/remove", "/reset", "/resend", "/service-tokens",
	"/service-tokens/new", "/security", "/audit",
}

// mayOnlyLook checks that a viewer may do nothing of what an owner is
// offered: no page shows it, and its address and its form are answered
// by a page with the reason.
func (b *tab) mayOnlyLook(owners offer) {
	b.t.Helper()
	own := b.offered()
	for _, path := range []string{"/console/logs", "/console/errors", "/console/usage", settingsPath + "api-keys", settingsPath + "members"} {
		if status := b.open(path); status != http.StatusOK {
			b.t.Errorf("a viewer is answered with %d at %s, want 200", status, path)
		}
	}
	for form := range own.forms {
		b.t.Errorf("a viewer is shown a form that is sent to %s", form)
	}
	refused := b.typeIn(owners, own)
	for _, deed := range deeds {
		if !slices.ContainsFunc(refused, func(path string) bool { return strings.Contains(path, deed) }) {
			b.t.Errorf("no address with %s was refused, so nothing is proved of it: %q", deed, refused)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(owners.forms)) {
		b.open(settingsPath + "organization")
		b.submit(form{path, map[string]string{"form": "x"}})
		b.isRefused("a form sent to " + path)
	}
}

// typeIn opens the pages that only an owner is offered, and
// returns their addresses.
func (b *tab) typeIn(owners, own offer) (refused []string) {
	b.t.Helper()
	for _, path := range slices.Sorted(maps.Keys(owners.pages)) {
		if own.pages[path] || strings.HasPrefix(path, accountPath) {
			continue
		}
		if status := b.open(path); status != http.StatusForbidden {
			b.t.Errorf("a viewer who types %s is answered with %d, want 403", path, status)
		}
		b.isRefused(path)
		refused = append(refused, path)
	}
	return refused
}

// isRefused checks that the page says what the reader may not do, in
// which role, and whom to ask.
func (b *tab) isRefused(what string) {
	b.t.Helper()
	text := ask[string](b, "document.querySelector('main').innerText")
	if !strings.HasPrefix(text, "You may not do this") || !strings.Contains(text, "Your role here is viewer") || !strings.Contains(text, "Ask") {
		b.t.Errorf("%s: it is not explained why a viewer may not do this: %s", what, text)
	}
}
