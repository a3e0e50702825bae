package keys

import (
	"net/http"
	"strconv"

	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/pages"
)

type changeKeyPage struct {
	Key    shownKey
	Fields []ui.Field
}

func (p Pages) showChange(w http.ResponseWriter, r *http.Request) error {
	key, err := p.keyToChange(r)
	if err != nil {
		return err
	}
	rate := ""
	if key.RatePerMinute > 0 {
		rate = strconv.Itoa(key.RatePerMinute)
	}
	return p.writeChange(w, r, http.StatusOK, keyForm{key.Name, rate, string(key.Access)}, nil)
}

// keyForm is the filled-in form of a changed key.
type keyForm struct{ name, rate, access string }

func (p Pages) writeChange(w http.ResponseWriter, r *http.Request, status int, form keyForm, fault error) error {
	key, err := p.keyToChange(r)
	if err != nil {
		return err
	}
	p.Write(w, r, status, "api-key-edit", ui.View{
		Title: "Edit an API key", Tabs: pages.Tabs(r, pages.APIKeysPath),
		Data: changeKeyPage{p.show(key), []ui.Field{nameOfKey(form.name, fault), accessOfKey(form.access, fault), rateOfKey(form.rate, fault)}},
	})
	return nil
}

func (p Pages) change(w http.ResponseWriter, r *http.Request) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	key, err := p.keyToChange(r)
	if err != nil {
		return err
	}
	form := keyForm{r.PostForm.Get("name"), r.PostForm.Get("rate_per_minute"), r.PostForm.Get("access")}
	rate, fault := readRate(form.rate)
	if fault != nil {
		return p.writeChange(w, r, http.StatusUnprocessableEntity, form, tenants.Invalid{*fault})
	}
	wanted := Change{Name: &form.name, RatePerMinute: &rate}
	if access := tenants.Access(form.access); access != "" { // older forms lack this field
		wanted.Access = &access
	}
	_, err = p.service.Change(r.Context(), p.RequestOf(r), key.ID, wanted)
	if pages.IsInvalid(err) {
		return p.writeChange(w, r, http.StatusUnprocessableEntity, form, err)
	}
	if err != nil {
		return keyProblem(err, key.ID)
	}
	return pages.Done(w, r, "key-changed", pages.APIKeysPath+"/"+key.ID)
}
