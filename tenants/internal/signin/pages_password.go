package signin

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
	"net/url"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/pages"
)

const passwordPath = pages.AccountPath + "/password"

// passwordPages change the reader's password.
type passwordPages struct {
	pages.Set
	browsers  *browsers
	limits    *limits
	passwords *Passwords
}

type passwordPage struct {
	Email  string // for password managers
	Fields []ui.Field
}

func (p passwordPages) show(w http.ResponseWriter, r *http.Request) error {
	off, err := p.passwords.Off(r.Context(), pages.CallerOf(r).Organization)
	if err == nil && off {
		err = ErrPasswordsOff
	}
	if err != nil {
		return problemOf(err, "password", "")
	}
	return p.write(w, r, http.StatusOK, nil, nil)
}

func (p passwordPages) write(w http.ResponseWriter, r *http.Request, status int, fault error, flash *ui.Flash) error {
	shown, err := p.Settings(r)
	if err != nil {
		return err
	}
	page := passwordPage{Email: shown.Member.Email, Fields: []ui.Field{
		{Name: "current_password", Label: "Current password", Type: "password", Fault: pages.FaultOf(fault, "current_password"),
			Autocomplete: "current-password", Required: true},
		pages.NewPassword(fault),
	}}
	page.Fields[1].Label = "New password"
	p.Write(w, r, status, "password", ui.View{Title: "Change your password", Tabs: pages.Tabs(r, pages.AccountPath), Flash: flash, Data: page})
	return nil
}

func (p passwordPages) change(w http.ResponseWriter, r *http.Request) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	if wait := p.limits.member(r); wait > 0 {
		return p.write(w, r, http.StatusTooManyRequests, nil, p.TooMany(w, r, wait))
	}
	before, password := tenants.Password(r.PostForm.Get("current_password")), tenants.Password(r.PostForm.Get("password"))
	err := p.passwords.Change(r.Context(), p.browsers.requestOf(r), identity.FromContext(r.Context()).ID, before, password)
	if pages.IsBusy(err) {
		return p.write(w, r, http.StatusTooManyRequests, nil, p.Busy(w, r))
	}
	if errors.Is(err, ErrPassword) {
		err = tenants.Invalid{{Field: "current_password", Detail: "This is not your password.", Fix: "Type it again, or ask an owner or admin for a reset."}}
	}
	if pages.IsInvalid(err) {
		return p.write(w, r, http.StatusUnprocessableEntity, err, nil)
	}
	if errors.Is(err, ErrPasswordsOff) {
		return problemOf(err, "password", "")
	}
	if err != nil {
		return ended(err)
	}
	return pages.Done(w, r, "password-changed", pages.AccountPath)
}

// confirmPages ask signed-in members for another proof of identity.
type confirmPages struct {
	pages.Set
	browsers  *browsers
	limits    *limits
	passwords *Passwords
	passkeys  *Passkeys
	provider  *Provider
	failures  *Failures
}

type confirmPage struct {
	Member   tenants.Member
	To       string // "": to the page that the reader left open
	Password ui.Field
	Passkeys bool   // the reader has some, and they can be used
	Off      bool   // the organization has switched passwords off
	Provider string // by which the reader may sign in again; "": none
	ByOIDC   string // its address
}

// show asks for a proof of identity. Without a
// destination it was opened beside a form that was too late.
func (p *confirmPages) show(w http.ResponseWriter, r *http.Request) error {
	beside := r.URL.Query().Get("to") == ""
	if p.Clock().Sub(identity.FromContext(r.Context()).AuthenticatedAt) >= pages.ConfirmLifetime {
		return p.write(w, r, http.StatusOK, nil)
	}
	if !beside {
		http.Redirect(w, r, pages.Destination(r), http.StatusSeeOther)
		return nil
	}
	p.Write(w, r, http.StatusOK, "confirm-done", ui.View{Title: "Thank you, it is you"})
	return nil
}

func (p *confirmPages) write(w http.ResponseWriter, r *http.Request, status int, flash *ui.Flash) error {
	member, err := p.Member(r)
	if err != nil {
		return err
	}
	passkeys, err := p.passkeys.OfCaller(r.Context(), pages.CallerOf(r))
	if err != nil {
		return err
	}
	off, err := p.passwords.Off(r.Context(), member.Organization)
	if err != nil {
		return err
	}
	page := confirmPage{Member: member, Off: off, Passkeys: p.passkeys.Usable() && len(passkeys) > 0, Password: ui.Field{
		Name: "password", Label: "Password", Type: "password", Autocomplete: "current-password", Required: true,
	}}
	if r.FormValue("to") != "" {
		page.To = pages.Destination(r)
	}
	if p.provider.Usable() && off {
		page.Provider, page.ByOIDC = p.provider.Name(), oidcPath+"?to="+url.QueryEscape(cmp.Or(page.To, pages.AccountPath))
	}
	p.Write(w, r, status, "confirm", ui.View{Title: "Confirm that it is you", Flash: flash, Data: page})
	return nil
}

func (p *confirmPages) confirm(w http.ResponseWriter, r *http.Request) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	if wait := p.limits.member(r); wait > 0 {
		return p.write(w, r, http.StatusTooManyRequests, p.TooMany(w, r, wait))
	}
	session, secret, err := p.passwords.Confirm(r.Context(), p.browsers.requestOf(r), identity.FromContext(r.Context()).ID,
		tenants.Password(r.PostForm.Get("password")))
	if pages.IsBusy(err) {
		return p.write(w, r, http.StatusTooManyRequests, p.Busy(w, r))
	}
	if errors.Is(err, ErrPasswordsOff) {
		return problemOf(err, "password", "")
	}
	if errors.Is(err, ErrSignIn) {
		if err := p.failed(r); err != nil {
			return err
		}
		return p.write(w, r, http.StatusUnprocessableEntity,
			&ui.Flash{Text: "This is not your password. Check it and try again.", Fault: true})
	}
	if err != nil {
		return ended(err)
	}
	p.redirect(w, r, session, secret)
	return nil
}

// failed records a wrong password in a member's session.
func (p *confirmPages) failed(r *http.Request) error {
	member, err := p.Member(r)
	if err != nil {
		return err
	}
	httpapi.Logger(r.Context()).Warn("a member failed to confirm their identity", slog.String("member", member.ID), slog.String("network", p.limits.network(r)))
	p.failures.Wrong(member.Email, p.limits.network(r))
	return nil
}

// redirect redirects a confirmed member to their destination.
func (p *confirmPages) redirect(w http.ResponseWriter, r *http.Request, session tenants.Session, secret tenants.Secret) {
	p.browsers.keep(w, session, secret)
	to := pages.ConfirmPath
	if r.PostForm.Get("to") != "" {
		to = pages.Destination(r)
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}
