package signin

import (
	"errors"
	"net/http"

	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/pages"
)

const passwordPath = pages.AccountPath + "/password"

type passwordPage struct {
	Email  string // for password managers
	Fields []ui.Field
}

func (p *Pages) showPassword(w http.ResponseWriter, r *http.Request) error {
	off, err := p.services.Passwords.Off(r.Context(), pages.CallerOf(r).Organization)
	if err == nil && off {
		err = ErrPasswordsOff
	}
	if err != nil {
		return problemOf(err, "password", "")
	}
	return p.writePassword(w, r, http.StatusOK, nil, nil)
}

func (p *Pages) writePassword(w http.ResponseWriter, r *http.Request, status int, fault error, flash *ui.Flash) error {
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

func (p *Pages) changePassword(w http.ResponseWriter, r *http.Request) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	if wait := p.limitMember(r); wait > 0 {
		return p.writePassword(w, r, http.StatusTooManyRequests, nil, p.TooMany(w, r, wait))
	}
	before, password := tenants.Password(r.PostForm.Get("current_password")), tenants.Password(r.PostForm.Get("password"))
	err := p.services.Passwords.Change(r.Context(), p.requestOf(r), identity.FromContext(r.Context()).ID, before, password)
	if pages.IsBusy(err) {
		return p.writePassword(w, r, http.StatusTooManyRequests, nil, p.Busy(w, r))
	}
	if errors.Is(err, ErrPassword) {
		err = tenants.Invalid{{Field: "current_password", Detail: "This is not your password.", Fix: "Type it again, or ask an owner or admin for a reset."}}
	}
	if pages.IsInvalid(err) {
		return p.writePassword(w, r, http.StatusUnprocessableEntity, err, nil)
	}
	if errors.Is(err, ErrPasswordsOff) {
		return problemOf(err, "password", "")
	}
	if err != nil {
		return ended(err)
	}
	return pages.Done(w, r, "password-changed", pages.AccountPath)
}
