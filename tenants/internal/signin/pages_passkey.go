package signin

import (
	"errors"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/challenge"
	"github.com/weirlog/weir/tenants/internal/pages"
)

const (
	passkeysPath       = pages.AccountPath + "/passkeys"
	signInPasskeyPath  = identity.SignInPath + "/passkey"
	confirmPasskeyPath = pages.ConfirmPath + "/passkey"
)

// ticketCookie holds the ticket for an answer. Other browsers can't answer.
const ticketCookie = "__Host-weir-challenge"

// setTicket sets the browser's ticket, or removes it.
func setTicket(w http.ResponseWriter, ticket string, seconds int) {
	http.SetCookie(w, &http.Cookie{
		Name: ticketCookie, Value: ticket, Path: "/", MaxAge: seconds, Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}

// takeTicket returns the browser's ticket, "" if it has none, and removes it.
func takeTicket(w http.ResponseWriter, r *http.Request) string {
	cookie, err := r.Cookie(ticketCookie)
	if err != nil {
		return ""
	}
	setTicket(w, "", -1)
	return cookie.Value
}

// passkeyPages are those of passkeys: of sign-ins and confirmations
// by one, and of the reader's own.
type passkeyPages struct {
	pages.Set
	browsers  *browsers
	limits    *limits
	passkeys  *Passkeys
	page      *signInPages
	toConfirm *confirmPages
}

// usable passes requests where passkeys can be used.
func (p passkeyPages) usable(next pages.Handler) pages.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if !p.passkeys.Usable() {
			return httpapi.NotFound("page", r.URL.Path)
		}
		return next(w, r)
	}
}

// writeChallenge responds to a script with a challenge.
func writeChallenge(w http.ResponseWriter, asked PasskeyChallenge, err error) error {
	if err != nil {
		return ended(passkeyProblem(err))
	}
	setTicket(w, asked.Ticket.Reveal(), int(challenge.Lifetime.Seconds()))
	w.Header().Set("Cache-Control", "no-store")
	httpapi.WriteJSON(w, http.StatusOK, asked.Options)
	return nil
}

// passkeyFault is why a passkey was not accepted; nil for another error.
func passkeyFault(err error) *ui.Flash {
	switch {
	case errors.Is(err, challenge.ErrNone):
		return &ui.Flash{Text: "That took too long, or was done in another browser. Try again.", Fault: true}
	case errors.Is(err, ErrSuspected):
		return &ui.Flash{Text: "There may be a copy of this passkey, so it is disabled. Use your password, and remove the passkey from your account.", Fault: true}
	case errors.Is(err, ErrPasskey):
		return &ui.Flash{Text: "This passkey was not accepted. It may have been removed here: use your password.", Fault: true}
	}
	return nil
}

func passkeyProblem(err error) error {
	if flash := passkeyFault(err); flash != nil {
		return httpapi.NewProblem(http.StatusUnprocessableEntity, httpapi.CodeInvalidRequest, flash.Text)
	}
	return err
}

func (p passkeyPages) beginSignIn(w http.ResponseWriter, r *http.Request) error {
	if wait := p.limits.challenge(r); wait > 0 {
		return httpapi.NewProblem(http.StatusTooManyRequests, httpapi.CodeRateLimited, p.TooMany(w, r, wait).Text)
	}
	asked, err := p.passkeys.BeginSignIn(r.Context())
	return writeChallenge(w, asked, err)
}

func (p passkeyPages) signIn(w http.ResponseWriter, r *http.Request) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	entry, err := p.passkeys.SignIn(r.Context(), p.browsers.Anonymous(r), takeTicket(w, r), answerOf(r))
	if flash := passkeyFault(err); flash != nil {
		p.page.write(w, r, http.StatusUnprocessableEntity, "", flash)
		return nil
	}
	if err != nil {
		return err
	}
	return p.browsers.CompleteSignIn(w, r, entry)
}

// answerOf is the answer of the browser's authenticator.
func answerOf(r *http.Request) []byte {
	return []byte(r.PostForm.Get("credential"))
}

func (p passkeyPages) beginConfirmation(w http.ResponseWriter, r *http.Request) error {
	if wait := p.limits.member(r); wait > 0 {
		return httpapi.NewProblem(http.StatusTooManyRequests, httpapi.CodeRateLimited, p.TooMany(w, r, wait).Text)
	}
	asked, err := p.passkeys.BeginConfirmation(r.Context(), pages.CallerOf(r), sessionID(r))
	return writeChallenge(w, asked, err)
}

func (p passkeyPages) confirm(w http.ResponseWriter, r *http.Request) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	session, secret, err := p.passkeys.Confirm(r.Context(), p.browsers.requestOf(r), sessionID(r), takeTicket(w, r), answerOf(r))
	if flash := passkeyFault(err); flash != nil {
		return p.toConfirm.write(w, r, http.StatusUnprocessableEntity, flash)
	}
	if err != nil {
		return ended(err)
	}
	p.toConfirm.redirect(w, r, session, secret)
	return nil
}

// sessionID is the signed-in person's session.
func sessionID(r *http.Request) string {
	return identity.FromContext(r.Context()).ID
}

type newPasskeyPage struct {
	pages.Settings
	Name ui.Field
}

func (p passkeyPages) showNew(w http.ResponseWriter, r *http.Request) error {
	return p.writeNew(w, r, http.StatusOK, "", nil, nil)
}

func (p passkeyPages) writeNew(w http.ResponseWriter, r *http.Request, status int, name string, fault error, flash *ui.Flash) error {
	shown, err := p.Settings(r)
	if err != nil {
		return err
	}
	p.Write(w, r, status, "passkey-new", ui.View{
		Title: "Add a passkey", Tabs: pages.Tabs(r, pages.AccountPath), Flash: flash,
		Data: newPasskeyPage{shown, ui.Field{
			Name: "name", Label: "Name", Value: name, Fault: pages.FaultOf(fault, "name"), MaxLength: 200, Required: true, Autocomplete: "off",
			Hint: "Where the passkey is kept, such as laptop, phone or security key.",
		}},
	})
	return nil
}

func (p passkeyPages) beginRegistration(w http.ResponseWriter, r *http.Request) error {
	asked, err := p.passkeys.BeginRegistration(r.Context(), pages.CallerOf(r), sessionID(r))
	return writeChallenge(w, asked, err)
}

func (p passkeyPages) register(w http.ResponseWriter, r *http.Request) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	name, ticket := r.PostForm.Get("name"), takeTicket(w, r)
	_, err := p.passkeys.Register(r.Context(), p.browsers.requestOf(r), sessionID(r), ticket, name, answerOf(r))
	flash := passkeyFault(err)
	if errors.Is(err, tenants.ErrTooMany) {
		flash = &ui.Flash{Text: "You have as many passkeys as can be. Remove one that you do not use.", Fault: true}
	}
	if flash != nil || pages.IsInvalid(err) {
		return p.writeNew(w, r, http.StatusUnprocessableEntity, name, err, flash)
	}
	if err != nil {
		return ended(err)
	}
	return pages.Done(w, r, "passkey-added", pages.AccountPath)
}

type removePasskeyPage struct {
	pages.Settings
	Passkey tenants.Passkey
}

func (p passkeyPages) showRemove(w http.ResponseWriter, r *http.Request) error {
	id := chi.URLParam(r, "id")
	found, err := p.passkeys.Own(r.Context(), pages.CallerOf(r), id)
	if err != nil {
		return problemOf(err, "passkey", id)
	}
	shown, err := p.Settings(r)
	if err != nil {
		return err
	}
	p.Write(w, r, http.StatusOK, "passkey-remove", ui.View{
		Title: "Remove a passkey", Tabs: pages.Tabs(r, pages.AccountPath), Data: removePasskeyPage{shown, found},
	})
	return nil
}

func (p passkeyPages) remove(w http.ResponseWriter, r *http.Request) error {
	id := chi.URLParam(r, "id")
	if err := p.passkeys.Remove(r.Context(), p.browsers.requestOf(r), id); err != nil {
		return problemOf(err, "passkey", id)
	}
	return pages.Done(w, r, "passkey-removed", pages.AccountPath)
}
