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
	return c.writeChangeAPIKey(w, r, http.StatusOK, key.Name, rate, nil)
}

func (c *console) writeChangeAPIKey(w http.ResponseWriter, r *http.Request, status int, name, rate string, fault error) error {
	key, err := c.keyToChange(r)
	if err != nil {
		return err
	}
	c.pages.Write(w, r, status, "api-key-edit", ui.View{
		Title: "Edit an API key", Tabs: tabs(r, apiKeysPath),
		Data: changeKeyPage{c.show(key), []ui.Field{nameOfKey(name, fault), rateOfKey(rate, fault)}},
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
	name, text := r.PostForm.Get("name"), r.PostForm.Get("rate_per_minute")
	rate, fault := readRate(text)
	if fault != nil {
		return c.writeChangeAPIKey(w, r, http.StatusUnprocessableEntity, name, text, tenants.Invalid{*fault})
	}
	_, err = c.Registrar.ChangeAPIKey(r.Context(), c.requestOf(r), key.ID, registrar.KeyChange{Name: &name, RatePerMinute: &rate})
	if isInvalid(err) {
		return c.writeChangeAPIKey(w, r, http.StatusUnprocessableEntity, name, text, err)
	}
	if err != nil {
		return keyProblem(err, key.ID)
	}
	ui.SetFlash(w, "key-changed")
	http.Redirect(w, r, apiKeysPath+"/"+key.ID, http.StatusSeeOther)
	return nil
}
