package signin

import (
	"embed"
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/shared/fairshare"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants/internal/pages"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

//go:embed templates/*.html
var templates embed.FS

// Pages are the pages of signing in and out, and of one's own account.
type Pages struct {
	pages.Set
	services       Services
	byNetwork      *attempts
	byChallenge    *attempts // sign-ins without a password, also by network: wrong passwords use up none of them
	byEmail        *attempts // and by code
	byDevice       *attempts
	byMember       *attempts // confirmations of signed-in members
	lookups        *fairshare.Limiter
	anonymousLimit *httpapi.AnonymousLimit
	metrics        *metrics
}

// NewPages returns the pages of some services.
func NewPages(kit *pages.Kit, services Services, registerer prometheus.Registerer) *Pages {
	return &Pages{
		Set: kit.Of(templates), services: services, lookups: newLookups(), metrics: newMetrics(registerer, services.Passwords.Config.Passwords),
		byNetwork:      newAttempts(kit.Clock, perNetwork, networkRefill),
		byChallenge:    newAttempts(kit.Clock, perNetwork, networkRefill),
		byDevice:       newAttempts(kit.Clock, perDevice, deviceRefill),
		byEmail:        newAttempts(kit.Clock, perEmail, emailRefill),
		byMember:       newAttempts(kit.Clock, perMember, memberRefill),
		anonymousLimit: httpapi.NewAnonymousLimit(pagesPerMinute, kit.TrustedProxies, kit.Clock),
	}
}

// MountOpen adds the pages before the sign-in.
func (p *Pages) MountOpen(router chi.Router) {
	router.Group(func(open chi.Router) {
		open.Use(p.Protect, p.limitAnonymous, p.RequireReady(p.Guard))
		open.Get("/console", p.goHome)
		open.Get("/console/*", p.Page(p.notFound)) // not of any module
		open.Get(identity.SignInPath, p.Page(p.showSignIn))
		open.Post(identity.SignInPath, p.Page(p.signIn))
		open.Post(signInPasskeyPath+"/options", p.Page(p.withPasskeys(p.beginSignIn)))
		open.Post(signInPasskeyPath, p.Page(p.withPasskeys(p.signInByPasskey)))
		open.Get(oidcPath, p.Page(p.withProvider(p.startOIDC)))
		open.Get(OIDCCallbackPath, p.Page(p.withProvider(p.finishOIDC)))
		open.Post("/console/sign-out", p.Page(p.signOut))
	})
	router.Group(p.mountSession)
}

// pagesPerMinute is how many pages a client network gets without a session.
const pagesPerMinute = 600

// limitAnonymous limits pages that need no
// session. Their forms have limits of their own.
func (p *Pages) limitAnonymous(next http.Handler) http.Handler {
	return p.Page(func(w http.ResponseWriter, r *http.Request) error {
		if r.Method == http.MethodGet {
			if err := p.anonymousLimit.Admit(r); err != nil {
				return err
			}
		}
		next.ServeHTTP(w, r)
		return nil
	})
}

// mountSession adds intermediate pages.
func (p *Pages) mountSession(detours chi.Router) {
	detours.Use(p.Protect, p.RequireSession(p.Guard))
	detours.Get(pages.ConfirmPath, p.Page(p.showConfirm))
	detours.Post(pages.ConfirmPath, p.Page(p.confirm))
	detours.Post(confirmPasskeyPath+"/options", p.Page(p.withPasskeys(p.beginConfirmation)))
	detours.Post(confirmPasskeyPath, p.Page(p.withPasskeys(p.confirmByPasskey)))
	detours.Get(identity.RenewPath, p.Page(p.renewSession))
}

// Mount adds one's own account to the settings.
func (p *Pages) Mount(settings chi.Router) {
	settings.Get(pages.AccountPath, p.Page(p.showAccount))
	settings.Get(passkeysPath+"/new", p.Page(p.withPasskeys(p.RequireConfirmed(p.showNewPasskey))))
	settings.Post(passkeysPath+"/options", p.Page(p.withPasskeys(p.RequireConfirmed(p.beginRegistration))))
	settings.Post(passkeysPath, p.Page(p.withPasskeys(p.RequireConfirmed(p.registerPasskey))))
	settings.Get(passkeysPath+"/{id}/remove", p.Page(p.withPasskeys(p.RequireConfirmed(p.showRemovePasskey))))
	settings.Post(passkeysPath+"/{id}/remove", p.Page(p.withPasskeys(p.RequireConfirmed(p.removePasskey))))
	settings.Post(pages.AccountPath+"/sessions/{id}/end", p.Page(p.endOneSession))
	settings.Post(pages.AccountPath+"/sessions/end-others", p.Page(p.endOtherSessions))
	settings.Get(passwordPath, p.Page(p.RequireConfirmed(p.showPassword)))
	settings.Post(passwordPath, p.Page(p.RequireConfirmed(p.changePassword)))
}

// notFound is the page for an unknown address.
// With a slash too many it is the console itself.
func (p *Pages) notFound(w http.ResponseWriter, r *http.Request) error {
	if r.URL.Path == "/console/" {
		p.goHome(w, r)
		return nil
	}
	return httpapi.NotFound("page", r.URL.Path)
}

// goHome redirects a signed-in member to their start, others to the sign-in.
func (p *Pages) goHome(w http.ResponseWriter, r *http.Request) {
	home := identity.SignInPath
	if member, err := p.Guard.Session(r); err == nil {
		home = ui.Home(member)
	}
	http.Redirect(w, r, home, http.StatusSeeOther)
}

// anonymous is a request before authentication, maybe from a known browser.
func (p *Pages) anonymous(r *http.Request) unitofwork.Request {
	request := p.Kit.Anonymous(r)
	request.Devices = devicesOf(r)
	return request
}

// requestOf is a form's request, maybe from a known browser.
func (p *Pages) requestOf(r *http.Request) unitofwork.Request {
	request := p.RequestOf(r)
	request.Devices = devicesOf(r)
	return request
}
