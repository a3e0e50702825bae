package console

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
	"github.com/weirlog/weir/tenants/internal/registrar"
)

const (
	passkeysPath       = pages.AccountPath + "/passkeys"
	signInPasskeyPath  = identity.SignInPath + "/passkey"
	confirmPasskeyPath = pages.ConfirmPath + "/passkey"
)

// ticketCookie carries the ticket for an answer. It is another browser's affair otherwise.
const ticketCookie = "__Host-weir-challenge"

// keepTicket lets the browser answer what it was asked, or forget it.
func keepTicket(w http.ResponseWriter, ticket string, seconds int) {
	http.SetCookie(w, &http.Cookie{
		Name: ticketCookie, Value: ticket, Path: "/", MaxAge: seconds, Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}

// takeTicket is the ticket that a browser has, which it then forgets; "" where it has none.
func takeTicket(w http.ResponseWriter, r *http.Request) string {
	cookie, err := r.Cookie(ticketCookie)
	if err != nil {
		return ""
	}
	keepTicket(w, "", -1)
	return cookie.Value
}

// withPasskeys lets requests through where passkeys can be used.
func (c *console) withPasskeys(next pages.Handler) pages.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if c.Registrar.RelyingParty == nil {
			return httpapi.NotFound("page", r.URL.Path)
		}
		return next(w, r)
	}
}

// put puts a question to the browser that asks for it, by a script.
func put(w http.ResponseWriter, asked registrar.Asked, err error) error {
	if err != nil {
		return ended(passkeyProblem(err))
	}
	keepTicket(w, asked.Ticket.Reveal(), int(challenge.Lasts.Seconds()))
	w.Header().Set("Cache-Control", "no-store")
	httpapi.WriteJSON(w, http.StatusOK, asked.Options)
	return nil
}

// passkeyFault says why a passkey was not accepted, nil where that was not the reason.
func passkeyFault(err error) *ui.Flash {
	switch {
	case errors.Is(err, challenge.ErrNone):
		return &ui.Flash{Text: "That took too long, or was done in another browser. Try again.", Fault: true}
	case errors.Is(err, registrar.ErrSuspected):
		return &ui.Flash{Text: "There may be a copy of this passkey, so it works no more. Use your password, and remove the passkey from your account.", Fault: true}
	case errors.Is(err, registrar.ErrPasskey):
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

func (c *console) askWhoSignsIn(w http.ResponseWriter, r *http.Request) error {
	if wait := c.byQuestion.take(c.network(r)); wait > 0 {
		return httpapi.NewProblem(http.StatusTooManyRequests, httpapi.CodeRateLimited, pages.TooMany(w, r, wait).Text)
	}
	asked, err := c.Registrar.AskWhoSignsIn(r.Context())
	return put(w, asked, err)
}

func (c *console) signInByPasskey(w http.ResponseWriter, r *http.Request) error {
	if err := pages.ReadForm(w, r); err != nil {
		return err
	}
	entry, err := c.Registrar.SignInByPasskey(r.Context(), c.anonymous(r), takeTicket(w, r), answerOf(r))
	if flash := passkeyFault(err); flash != nil {
		c.writeSignIn(w, r, http.StatusUnprocessableEntity, "", flash)
		return nil
	}
	if err != nil {
		return err
	}
	return c.letIn(w, r, entry)
}

// answerOf is what the browser's authenticator has said.
func answerOf(r *http.Request) []byte {
	return []byte(r.PostForm.Get("credential"))
}

func (c *console) askToConfirm(w http.ResponseWriter, r *http.Request) error {
	if wait := c.limitMember(r); wait > 0 {
		return httpapi.NewProblem(http.StatusTooManyRequests, httpapi.CodeRateLimited, pages.TooMany(w, r, wait).Text)
	}
	asked, err := c.Registrar.AskToConfirm(r.Context(), pages.CallerOf(r), sessionID(r))
	return put(w, asked, err)
}

func (c *console) confirmByPasskey(w http.ResponseWriter, r *http.Request) error {
	if err := pages.ReadForm(w, r); err != nil {
		return err
	}
	session, secret, err := c.Registrar.ConfirmByPasskey(r.Context(), c.requestOf(r), sessionID(r), takeTicket(w, r), answerOf(r))
	if flash := passkeyFault(err); flash != nil {
		return c.writeConfirm(w, r, http.StatusUnprocessableEntity, flash)
	}
	if err != nil {
		return ended(err)
	}
	c.goOn(w, r, session, secret)
	return nil
}

// sessionID is the session of whoever has signed in.
func sessionID(r *http.Request) string {
	return identity.FromContext(r.Context()).ID
}

type newPasskeyPage struct {
	pages.Settings
	Name ui.Field
}

func (c *console) showNewPasskey(w http.ResponseWriter, r *http.Request) error {
	return c.writeNewPasskey(w, r, http.StatusOK, "", nil, nil)
}

func (c *console) writeNewPasskey(w http.ResponseWriter, r *http.Request, status int, name string, fault error, flash *ui.Flash) error {
	shown, err := c.Settings(r)
	if err != nil {
		return err
	}
	c.Write(w, r, status, "passkey-new", ui.View{
		Title: "Add a passkey", Tabs: pages.Tabs(r, pages.AccountPath), Flash: flash,
		Data: newPasskeyPage{shown, ui.Field{
			Name: "name", Label: "Name", Value: name, Fault: pages.FaultOf(fault, "name"), MaxLength: 200, Required: true, Autocomplete: "off",
			Hint: "Where the passkey is kept, such as laptop, phone or security key.",
		}},
	})
	return nil
}

func (c *console) askForPasskey(w http.ResponseWriter, r *http.Request) error {
	asked, err := c.Registrar.AskForPasskey(r.Context(), pages.CallerOf(r), sessionID(r))
	return put(w, asked, err)
}

func (c *console) registerPasskey(w http.ResponseWriter, r *http.Request) error {
	if err := pages.ReadForm(w, r); err != nil {
		return err
	}
	name, ticket := r.PostForm.Get("name"), takeTicket(w, r)
	_, err := c.Registrar.RegisterPasskey(r.Context(), c.requestOf(r), sessionID(r), ticket, name, answerOf(r))
	flash := passkeyFault(err)
	if errors.Is(err, tenants.ErrTooMany) {
		flash = &ui.Flash{Text: "You have as many passkeys as can be. Remove one that you do not use.", Fault: true}
	}
	if flash != nil || pages.IsInvalid(err) {
		return c.writeNewPasskey(w, r, http.StatusUnprocessableEntity, name, err, flash)
	}
	if err != nil {
		return ended(err)
	}
	ui.SetFlash(w, "passkey-added")
	http.Redirect(w, r, pages.AccountPath, http.StatusSeeOther)
	return nil
}

type removePasskeyPage struct {
	pages.Settings
	Passkey tenants.Passkey
}

func (c *console) showRemovePasskey(w http.ResponseWriter, r *http.Request) error {
	id := chi.URLParam(r, "id")
	found, err := c.Registrar.OwnPasskey(r.Context(), pages.CallerOf(r), id)
	if err != nil {
		return problemOf(err, "passkey", id)
	}
	shown, err := c.Settings(r)
	if err != nil {
		return err
	}
	c.Write(w, r, http.StatusOK, "passkey-remove", ui.View{
		Title: "Remove a passkey", Tabs: pages.Tabs(r, pages.AccountPath), Data: removePasskeyPage{shown, found},
	})
	return nil
}

func (c *console) removePasskey(w http.ResponseWriter, r *http.Request) error {
	id := chi.URLParam(r, "id")
	if err := c.Registrar.RemovePasskey(r.Context(), c.requestOf(r), id); err != nil {
		return problemOf(err, "passkey", id)
	}
	ui.SetFlash(w, "passkey-removed")
	http.Redirect(w, r, pages.AccountPath, http.StatusSeeOther)
	return nil
}
