// Package console is the pages of tenants: signing in and out, and what members see to themselves. Whatever they
// show or change belongs to the member of the session.
package console

import (
	"embed"
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/shared/fair"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants/internal/pages"
	"github.com/weirlog/weir/tenants/internal/postgres"
	"github.com/weirlog/weir/tenants/internal/registrar"
)

//go:embed templates/*.html
var templates embed.FS

// Config is what the pages work with. All of it is required.
type Config struct {
	Registrar *registrar.Registrar
	Views     *postgres.Views
	Failures  *registrar.Failures
	Metrics   prometheus.Registerer
}

type console struct {
	Config
	pages.Set
	byNetwork  *attempts
	byQuestion *attempts // sign-ins without a password, by network too: who guesses passwords takes nothing from them
	byEmail    *attempts // and by code
	byDevice   *attempts
	byMember   *attempts // who has signed in
	lookups    *fair.Queue
	metrics    *metrics
}

// New returns the pages.
func New(kit *pages.Kit, config Config) *console {
	c := &console{Config: config, Set: kit.Of(templates)}
	c.lookups, c.metrics = newLookups(), newMetrics(config.Metrics, config.Registrar.Passwords)
	c.byNetwork = newAttempts(kit.Clock, perNetwork, networkRefill)
	c.byQuestion = newAttempts(kit.Clock, perNetwork, networkRefill)
	c.byDevice = newAttempts(kit.Clock, perDevice, deviceRefill)
	c.byEmail = newAttempts(kit.Clock, perEmail, emailRefill)
	c.byMember = newAttempts(kit.Clock, perMember, memberRefill)
	return c
}

// Mount adds the pages that lead in.
func (c *console) Mount(router chi.Router) {
	router.Group(func(open chi.Router) {
		open.Use(c.Protect, c.RequireReady(c.Guard))
		open.Get("/console", c.goHome)
		open.Get("/console/*", c.Page(c.noPage)) // what no module has
		open.Get(identity.SignInPath, c.Page(c.showSignIn))
		open.Post(identity.SignInPath, c.Page(c.signIn))
		open.Post(signInPasskeyPath+"/options", c.Page(c.withPasskeys(c.askWhoSignsIn)))
		open.Post(signInPasskeyPath, c.Page(c.withPasskeys(c.signInByPasskey)))
		open.Get(oidcPath, c.Page(c.withProvider(c.startOIDC)))
		open.Get(OIDCCallbackPath, c.Page(c.withProvider(c.finishOIDC)))
		open.Post("/console/sign-out", c.Page(c.signOut))
	})
	router.Group(c.mountSession)
}

// mountSession adds what is asked for on the way to other pages.
func (c *console) mountSession(detours chi.Router) {
	detours.Use(c.Protect, c.RequireSession(c.Guard))
	detours.Get(pages.ConfirmPath, c.Page(c.showConfirm))
	detours.Post(pages.ConfirmPath, c.Page(c.confirm))
	detours.Post(confirmPasskeyPath+"/options", c.Page(c.withPasskeys(c.askToConfirm)))
	detours.Post(confirmPasskeyPath, c.Page(c.withPasskeys(c.confirmByPasskey)))
	detours.Get(identity.RenewPath, c.Page(c.renewSession))
}

// MountSettings adds the settings.
func (c *console) MountSettings(settings chi.Router) {
	settings.Get(pages.AccountPath, c.Page(c.showAccount))
	settings.Get(passkeysPath+"/new", c.Page(c.withPasskeys(c.RequireConfirmed(c.showNewPasskey))))
	settings.Post(passkeysPath+"/options", c.Page(c.withPasskeys(c.RequireConfirmed(c.askForPasskey))))
	settings.Post(passkeysPath, c.Page(c.withPasskeys(c.RequireConfirmed(c.registerPasskey))))
	settings.Get(passkeysPath+"/{id}/remove", c.Page(c.withPasskeys(c.RequireConfirmed(c.showRemovePasskey))))
	settings.Post(passkeysPath+"/{id}/remove", c.Page(c.withPasskeys(c.RequireConfirmed(c.removePasskey))))
	settings.Post(pages.AccountPath+"/sessions/{id}/end", c.Page(c.endOneSession))
	settings.Post(pages.AccountPath+"/sessions/end-others", c.Page(c.endOtherSessions))
	settings.Get(passwordPath, c.Page(c.RequireConfirmed(c.showPassword)))
	settings.Post(passwordPath, c.Page(c.RequireConfirmed(c.changePassword)))
}

// noPage says that there is no such page; the address with a slash too many is the console itself.
func (c *console) noPage(w http.ResponseWriter, r *http.Request) error {
	if r.URL.Path == "/console/" {
		c.goHome(w, r)
		return nil
	}
	return httpapi.NotFound("page", r.URL.Path)
}

// goHome leads to where the member starts who has signed in; others to the sign-in.
func (c *console) goHome(w http.ResponseWriter, r *http.Request) {
	home := identity.SignInPath
	if member, err := c.Guard.Session(r); err == nil {
		home = ui.Home(member)
	}
	http.Redirect(w, r, home, http.StatusSeeOther)
}

// anonymous is a request of somebody who is not known yet.
func (c *console) anonymous(r *http.Request) registrar.Request {
	request := c.Anonymous(r)
	request.Devices = devicesOf(r)
	return request
}

// requestOf is a request of a form.
func (c *console) requestOf(r *http.Request) registrar.Request {
	request := c.RequestOf(r)
	request.Devices = devicesOf(r)
	return request
}
