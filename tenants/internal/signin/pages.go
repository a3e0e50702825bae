package signin

import (
	"embed"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/shared/fairshare"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
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

// problemOf adds this room's errors to pages.ProblemOf.
func problemOf(err error, what, id string) error {
	switch {
	case errors.Is(err, ErrPasswordsOff):
		return httpapi.NewProblem(http.StatusConflict, "passwords_off",
			"Your organization has switched passwords off: members sign in with passkeys or by the identity provider.")
	case errors.Is(err, ErrLastSignInMethod):
		return httpapi.NewProblem(http.StatusConflict, "last_way",
			"This passkey is the only way in that you have while passwords are switched off. Add another one first.")
	}
	return pages.ProblemOf(err, what, id)
}

// ended adds this room's errors to pages.Ended.
func ended(err error) error {
	if errors.Is(err, tenants.ErrNotFound) {
		return pages.Ended(err)
	}
	return problemOf(err, "session", "")
}

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

type accountPage struct {
	pages.Settings
	Sessions     []shownSession
	Passkeys     []tenants.Passkey
	PasskeysWork bool
	PasswordsOff bool
}

// shownSession is a session as its member sees it.
type shownSession struct {
	SeenSession
	Own bool // the reader's
}

// With is the method of the sign-in, as text.
func (s shownSession) With() string {
	switch s.Method {
	case tenants.ByPasskey:
		return "Passkey"
	case tenants.ByOIDC:
		return "Identity provider"
	case tenants.ByCode:
		return "Code"
	}
	return "Password"
}

// On is the browser, as text.
func (s shownSession) On() string { return clientName(s.Client) }

// showAccount shows the reader's own account.
func (p *Pages) showAccount(w http.ResponseWriter, r *http.Request) error {
	shown, err := p.Settings(r)
	if err != nil {
		return err
	}
	caller := pages.CallerOf(r)
	sessions, err := p.services.Sessions.OfCaller(r.Context(), caller, p.Clock())
	if err != nil {
		return err
	}
	passkeys, err := p.services.Passkeys.OfCaller(r.Context(), caller)
	if err != nil {
		return err
	}
	off, err := p.services.Passwords.Off(r.Context(), caller.Organization)
	if err != nil {
		return err
	}
	page := accountPage{shown, showSessions(sessions, sessionID(r)), passkeys, p.services.Passkeys.Usable(), off}
	p.Write(w, r, http.StatusOK, "account", ui.View{
		Title: "Your account", Tabs: pages.Tabs(r, pages.AccountPath), Data: page,
		Flash: ui.TakeFlash(w, r, map[string]string{
			"identified": "From now on your identity provider knows you by this account, whatever your e-mail address is there. " +
				"Its password goes on working: if you did not set it yourself, ask an owner or admin for a code to set another.",
			"session-ended":    "The session was signed out.",
			"passkey-added":    "The passkey was added. From now on you can sign in with it.",
			"passkey-removed":  "The passkey was removed.",
			"mails-chosen":     "Your choice of mail was saved. It holds from now on.",
			"sessions-ended":   "All your other sessions were signed out.",
			"password-changed": "Your password was changed, and all your other sessions were signed out.",
		}),
	})
	return nil
}

// showSessions sorts the reader's own session first, then the last used.
func showSessions(sessions []SeenSession, own string) (shown []shownSession) {
	for _, session := range sessions {
		shown = append(shown, shownSession{session, session.ID == own})
	}
	slices.SortStableFunc(shown, func(a, b shownSession) int {
		switch {
		case a.Own:
			return -1
		case b.Own:
			return 1
		}
		return b.SeenAt.Compare(a.SeenAt)
	})
	return shown
}

func (p *Pages) endOneSession(w http.ResponseWriter, r *http.Request) error {
	id := chi.URLParam(r, "id")
	if err := p.services.Sessions.EndOwn(r.Context(), p.requestOf(r), id); err != nil {
		return problemOf(err, "session", id)
	}
	return pages.Done(w, r, "session-ended", pages.AccountPath)
}

func (p *Pages) endOtherSessions(w http.ResponseWriter, r *http.Request) error {
	if err := p.services.Sessions.EndOthers(r.Context(), p.requestOf(r), sessionID(r)); err != nil {
		return problemOf(err, "member", pages.CallerOf(r).ID)
	}
	return pages.Done(w, r, "sessions-ended", pages.AccountPath)
}
