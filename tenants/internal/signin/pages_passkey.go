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

// withPasskeys passes requests where passkeys can be used.
func (p *Pages) withPasskeys(next pages.Handler) pages.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if !p.services.Passkeys.Usable() {
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

func (p *Pages) beginSignIn(w http.ResponseWriter, r *http.Request) error {
	if wait := p.byChallenge.take(p.network(r)); wait > 0 {
		return httpapi.NewProblem(http.StatusTooManyRequests, httpapi.CodeRateLimited, p.TooMany(w, r, wait).Text)
	}
	asked, err := p.services.Passkeys.BeginSignIn(r.Context())
	return writeChallenge(w, asked, err)
}

func (p *Pages) signInByPasskey(w http.ResponseWriter, r *http.Request) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	entry, err := p.services.Passkeys.SignIn(r.Context(), p.anonymous(r), takeTicket(w, r), answerOf(r))
	if flash := passkeyFault(err); flash != nil {
		p.writeSignIn(w, r, http.StatusUnprocessableEntity, "", flash)
		return nil
	}
	if err != nil {
		return err
	}
	return p.completeSignIn(w, r, entry)
}

// answerOf is the answer of the browser's authenticator.
func answerOf(r *http.Request) []byte {
	return []byte(r.PostForm.Get("credential"))
}

func (p *Pages) beginConfirmation(w http.ResponseWriter, r *http.Request) error {
	if wait := p.limitMember(r); wait > 0 {
		return httpapi.NewProblem(http.StatusTooManyRequests, httpapi.CodeRateLimited, p.TooMany(w, r, wait).Text)
	}
	asked, err := p.services.Passkeys.BeginConfirmation(r.Context(), pages.CallerOf(r), sessionID(r))
	return writeChallenge(w, asked, err)
}

func (p *Pages) confirmByPasskey(w http.ResponseWriter, r *http.Request) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	session, secret, err := p.services.Passkeys.Confirm(r.Context(), p.requestOf(r), sessionID(r), takeTicket(w, r), answerOf(r))
	if flash := passkeyFault(err); flash != nil {
		return p.writeConfirm(w, r, http.StatusUnprocessableEntity, flash)
	}
	if err != nil {
		return ended(err)
	}
	p.redirectConfirmed(w, r, session, secret)
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

func (p *Pages) showNewPasskey(w http.ResponseWriter, r *http.Request) error {
	return p.writeNewPasskey(w, r, http.StatusOK, "", nil, nil)
}

func (p *Pages) writeNewPasskey(w http.ResponseWriter, r *http.Request, status int, name string, fault error, flash *ui.Flash) error {
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

func (p *Pages) beginRegistration(w http.ResponseWriter, r *http.Request) error {
	asked, err := p.services.Passkeys.BeginRegistration(r.Context(), pages.CallerOf(r), sessionID(r))
	return writeChallenge(w, asked, err)
}

func (p *Pages) registerPasskey(w http.ResponseWriter, r *http.Request) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	name, ticket := r.PostForm.Get("name"), takeTicket(w, r)
	_, err := p.services.Passkeys.Register(r.Context(), p.requestOf(r), sessionID(r), ticket, name, answerOf(r))
	flash := passkeyFault(err)
	if errors.Is(err, tenants.ErrTooMany) {
		flash = &ui.Flash{Text: "You have as many passkeys as can be. Remove one that you do not use.", Fault: true}
	}
	if flash != nil || pages.IsInvalid(err) {
		return p.writeNewPasskey(w, r, http.StatusUnprocessableEntity, name, err, flash)
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

func (p *Pages) showRemovePasskey(w http.ResponseWriter, r *http.Request) error {
	id := chi.URLParam(r, "id")
	found, err := p.services.Passkeys.Own(r.Context(), pages.CallerOf(r), id)
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

func (p *Pages) removePasskey(w http.ResponseWriter, r *http.Request) error {
	id := chi.URLParam(r, "id")
	if err := p.services.Passkeys.Remove(r.Context(), p.requestOf(r), id); err != nil {
		return problemOf(err, "passkey", id)
	}
	return pages.Done(w, r, "passkey-removed", pages.AccountPath)
}
