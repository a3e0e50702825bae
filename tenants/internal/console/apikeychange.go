package console

import (
	"net/http"
	"strconv"

	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/registrar"
)

type changeKeyPage struct {
	Key    shownKey
	Fields []ui.Field
}

func (c *console) showChangeAPIKey(w http.ResponseWriter, r *http.Request) error {
	key, err := c.keyToChange(r)
	if err != nil {
		return err
	}
	rate := ""
	if key.RatePerMinute > 0 {
		rate = strconv.Itoa(key.RatePerMinute)
	}
	return c.writeChangeAPIKey(w, r, http.StatusOK, keyForm{key.Name, rate, string(key.Access)}, nil)
}

// keyForm is the form of a key that is changed, as it was filled in.
type keyForm struct{ name, rate, access string }

func (c *console) writeChangeAPIKey(w http.ResponseWriter, r *http.Request, status int, form keyForm, fault error) error {
	key, err := c.keyToChange(r)
	if err != nil {
		return err
	}
	c.pages.Write(w, r, status, "api-key-edit", ui.View{
		Title: "Edit an API key", Tabs: tabs(r, apiKeysPath),
		Data: changeKeyPage{c.show(key), []ui.Field{nameOfKey(form.name, fault), accessOfKey(form.access, fault), rateOfKey(form.rate, fault)}},
	})
	return nil
}

func (c *console) changeAPIKey(w http.ResponseWriter, r *http.Request) error {
	if err := readForm(w, r); err != nil {
		return err
	}
	key, err := c.keyToChange(r)
	if err != nil {
		return err
	}
	form := keyForm{r.PostForm.Get("name"), r.PostForm.Get("rate_per_minute"), r.PostForm.Get("access")}
	rate, fault := readRate(form.rate)
	if fault != nil {
		return c.writeChangeAPIKey(w, r, http.StatusUnprocessableEntity, form, tenants.Invalid{*fault})
	}
	wanted := registrar.KeyChange{Name: &form.name, RatePerMinute: &rate}
	if access := tenants.Access(form.access); access != "" { // a form of before does not say
		wanted.Access = &access
	}
	_, err = c.Registrar.ChangeAPIKey(r.Context(), c.requestOf(r), key.ID, wanted)
	if isInvalid(err) {
		return c.writeChangeAPIKey(w, r, http.StatusUnprocessableEntity, form, err)
	}
	if err != nil {
		return keyProblem(err, key.ID)
	}
	ui.SetFlash(w, "key-changed")
	http.Redirect(w, r, apiKeysPath+"/"+key.ID, http.StatusSeeOther)
	return nil
}
