package signin

import (
	"embed"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/pages"
)

//go:embed templates/*.html
var templates embed.FS

// Pages are the pages of signing in and out, and of one's own account.
type Pages struct {
	pages.Set
	anonymousLimit *httpapi.AnonymousLimit
	browsers       *browsers
	signIn         *signInPages
	confirm        *confirmPages
	passkeys       passkeyPages
	provider       providerPages
	passwords      passwordPages
	account        accountPages
}

// NewPages returns the pages of some services.
func NewPages(kit *pages.Kit, services Services, registerer prometheus.Registerer) *Pages {
	set, in, limits := kit.Of(templates), &browsers{kit, services.Sessions}, newLimits(kit)
	signIn := &signInPages{
		Set: set, browsers: in, limits: limits, sessions: services.Sessions, passwords: services.Passwords, passkeys: services.Passkeys,
		provider: services.Provider, failures: services.Failures, lookups: newLookups(), metrics: newMetrics(registerer, services.Passwords.Config.Passwords),
	}
	confirm := &confirmPages{set, in, limits, services.Passwords, services.Passkeys, services.Provider, services.Failures}
	return &Pages{
		Set: set, anonymousLimit: httpapi.NewAnonymousLimit(pagesPerMinute, kit.TrustedProxies, kit.Clock), browsers: in, signIn: signIn, confirm: confirm,
		passkeys:  passkeyPages{set, in, limits, services.Passkeys, signIn, confirm},
		provider:  providerPages{in, limits, services.Provider, signIn},
		passwords: passwordPages{set, in, limits, services.Passwords},
		account:   accountPages{set, in, services.Sessions, services.Passkeys, services.Passwords},
	}
}

// MountOpen adds the pages before the sign-in.
func (p *Pages) MountOpen(router chi.Router) {
	router.Group(func(open chi.Router) {
		open.Use(p.Protect, p.limitAnonymous, p.RequireReady(p.Guard))
		open.Get("/console", p.goHome)
		open.Get("/console/*", p.Page(p.notFound)) // not of any module
		open.Get(identity.SignInPath, p.Page(p.signIn.show))
		open.Post(identity.SignInPath, p.Page(p.signIn.signIn))
		open.Post(signInPasskeyPath+"/options", p.Page(p.passkeys.usable(p.passkeys.beginSignIn)))
		open.Post(signInPasskeyPath, p.Page(p.passkeys.usable(p.passkeys.signIn)))
		open.Get(oidcPath, p.Page(p.provider.usable(p.provider.start)))
		open.Get(OIDCCallbackPath, p.Page(p.provider.usable(p.provider.finish)))
		open.Post("/console/sign-out", p.Page(p.browsers.signOut))
	})
	router.Group(func(detours chi.Router) { // intermediate pages
		detours.Use(p.Protect, p.RequireSession(p.Guard))
		detours.Get(pages.ConfirmPath, p.Page(p.confirm.show))
		detours.Post(pages.ConfirmPath, p.Page(p.confirm.confirm))
		detours.Post(confirmPasskeyPath+"/options", p.Page(p.passkeys.usable(p.passkeys.beginConfirmation)))
		detours.Post(confirmPasskeyPath, p.Page(p.passkeys.usable(p.passkeys.confirm)))
		detours.Get(identity.RenewPath, p.Page(p.browsers.renew))
	})
}

// Mount adds one's own account to the settings.
func (p *Pages) Mount(settings chi.Router) {
	settings.Get(pages.AccountPath, p.Page(p.account.show))
	passkey := func(handle pages.Handler) http.HandlerFunc {
		return p.Page(p.passkeys.usable(p.RequireConfirmed(handle)))
	}
	settings.Get(passkeysPath+"/new", passkey(p.passkeys.showNew))
	settings.Post(passkeysPath+"/options", passkey(p.passkeys.beginRegistration))
	settings.Post(passkeysPath, passkey(p.passkeys.register))
	settings.Get(passkeysPath+"/{id}/remove", passkey(p.passkeys.showRemove))
	settings.Post(passkeysPath+"/{id}/remove", passkey(p.passkeys.remove))
	settings.Post(pages.AccountPath+"/sessions/{id}/end", p.Page(p.account.endOne))
	settings.Post(pages.AccountPath+"/sessions/end-others", p.Page(p.account.endOthers))
	settings.Get(passwordPath, p.Page(p.RequireConfirmed(p.passwords.show)))
	settings.Post(passwordPath, p.Page(p.RequireConfirmed(p.passwords.change)))
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
type Entrance struct {
	*browsers
	limits   *limits
	passkeys *Passkeys
}

// Entrance returns the entrance of the pages.
func (p *Pages) Entrance() Entrance { return Entrance{p.browsers, p.signIn.limits, p.signIn.passkeys} }

// Limit counts an attempt under a name, or returns
// how long to wait for the next one: 0: counted.
func (e Entrance) Limit(r *http.Request, name string) (wait time.Duration) {
	return e.limits.attempt(r, name)
}

// CompleteSignInByCode redirects to where
// another way to sign in can be added.
func (e Entrance) CompleteSignInByCode(w http.ResponseWriter, r *http.Request, entry tenants.SignInResult) error {
	if e.passkeys.Usable() {
		return e.start(w, r, entry, passkeysPath+"/new")
	}
	return e.start(w, r, entry, pages.AccountPath)
}

// accountPages are the reader's own account and sessions.
type accountPages struct {
	pages.Set
	browsers  *browsers
	sessions  *Sessions
	passkeys  *Passkeys
	passwords *Passwords
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

// show shows the reader's own account.
func (p accountPages) show(w http.ResponseWriter, r *http.Request) error {
	shown, err := p.Settings(r)
	if err != nil {
		return err
	}
	caller := pages.CallerOf(r)
	sessions, err := p.sessions.OfCaller(r.Context(), caller, p.Clock())
	if err != nil {
		return err
	}
	passkeys, err := p.passkeys.OfCaller(r.Context(), caller)
	if err != nil {
		return err
	}
	off, err := p.passwords.Off(r.Context(), caller.Organization)
	if err != nil {
		return err
	}
	page := accountPage{shown, showSessions(sessions, sessionID(r)), passkeys, p.passkeys.Usable(), off}
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

func (p accountPages) endOne(w http.ResponseWriter, r *http.Request) error {
	id := chi.URLParam(r, "id")
	if err := p.sessions.EndOwn(r.Context(), p.browsers.requestOf(r), id); err != nil {
		return problemOf(err, "session", id)
	}
	return pages.Done(w, r, "session-ended", pages.AccountPath)
}

func (p accountPages) endOthers(w http.ResponseWriter, r *http.Request) error {
	if err := p.sessions.EndOthers(r.Context(), p.browsers.requestOf(r), sessionID(r)); err != nil {
		return problemOf(err, "member", pages.CallerOf(r).ID)
	}
	return pages.Done(w, r, "sessions-ended", pages.AccountPath)
}
