package signin

import (
	"net/http"
	"slices"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/pages"
)

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
