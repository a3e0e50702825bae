package signin

import (
	"net/http"
	"time"

	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/pages"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// An Entrance completes sign-ins by a code.
type Entrance struct{ pages *Pages }

// Entrance returns the entrance of the pages.
func (p *Pages) Entrance() Entrance { return Entrance{p} }

// Limit counts an attempt under a name, or returns
// how long to wait for the next one: 0: counted.
func (e Entrance) Limit(r *http.Request, name string) (wait time.Duration) {
	return e.pages.limit(r, name)
}

// Anonymous is a request before authentication, maybe from a known browser.
func (e Entrance) Anonymous(r *http.Request) unitofwork.Request { return e.pages.anonymous(r) }

// CompleteSignIn gives the browser its
// session, and redirects to its destination.
func (e Entrance) CompleteSignIn(w http.ResponseWriter, r *http.Request, entry tenants.SignInResult) error {
	return e.pages.completeSignIn(w, r, entry)
}

// CompleteSignInByCode redirects to where
// another way to sign in can be added.
func (e Entrance) CompleteSignInByCode(w http.ResponseWriter, r *http.Request, entry tenants.SignInResult) error {
	if e.pages.services.Passkeys.Usable() {
		return e.pages.startBrowserSession(w, r, entry, passkeysPath+"/new")
	}
	return e.pages.startBrowserSession(w, r, entry, pages.AccountPath)
}
