package console

import (
	"errors"
	"net/http"

	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/pages"
	"github.com/weirlog/weir/tenants/internal/registrar"
)

const passwordPath = pages.AccountPath + "/password"

type passwordPage struct {
	Email  string // for password managers
	Fields []ui.Field
}

func (c *console) showPassword(w http.ResponseWriter, r *http.Request) error {
	off, err := c.Registrar.PasswordsOff(r.Context(), pages.CallerOf(r).Organization)
	if err == nil && off {
		err = registrar.ErrPasswordsOff
	}
	if err != nil {
		return problemOf(err, "password", "")
	}
	return c.writePassword(w, r, http.StatusOK, nil, nil)
}

func (c *console) writePassword(w http.ResponseWriter, r *http.Request, status int, fault error, flash *ui.Flash) error {
	shown, err := c.Settings(r)
	if err != nil {
		return err
	}
	page := passwordPage{Email: shown.Member.Email, Fields: []ui.Field{
		{Name: "current_password", Label: "Current password", Type: "password", Fault: pages.FaultOf(fault, "current_password"),
			Autocomplete: "current-password", Required: true},
		pages.NewPassword(fault),
	}}
	page.Fields[1].Label = "New password"
	c.Write(w, r, status, "password", ui.View{Title: "Change your password", Tabs: pages.Tabs(r, pages.AccountPath), Flash: flash, Data: page})
	return nil
}

func (c *console) changePassword(w http.ResponseWriter, r *http.Request) error {
	if err := pages.ReadForm(w, r); err != nil {
		return err
	}
	if wait := c.limitMember(r); wait > 0 {
		return c.writePassword(w, r, http.StatusTooManyRequests, nil, pages.TooMany(w, r, wait))
	}
	before, password := tenants.Password(r.PostForm.Get("current_password")), tenants.Password(r.PostForm.Get("password"))
	err := c.Registrar.ChangePassword(r.Context(), c.requestOf(r), identity.FromContext(r.Context()).ID, before, password)
	if pages.IsBusy(err) {
		return c.writePassword(w, r, http.StatusTooManyRequests, nil, pages.Busy(w, r))
	}
	if errors.Is(err, registrar.ErrPassword) {
		err = tenants.Invalid{{Field: "current_password", Detail: "This is not your password.", Fix: "Type it again, or ask an owner or admin for a reset."}}
	}
	if pages.IsInvalid(err) {
		return c.writePassword(w, r, http.StatusUnprocessableEntity, err, nil)
	}
	if errors.Is(err, registrar.ErrPasswordsOff) {
		return problemOf(err, "password", "")
	}
	if err != nil {
		return ended(err)
	}
	ui.SetFlash(w, "password-changed")
	http.Redirect(w, r, pages.AccountPath, http.StatusSeeOther)
	return nil
}
