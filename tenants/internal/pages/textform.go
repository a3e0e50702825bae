package pages

import (
	"context"
	"net/http"

	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// A TextForm is a form of one text about one thing, such as its new name.
type TextForm[T any] struct {
	What   string                                       // the thing's noun
	Field  string                                       // the name of the text
	ID     func(r *http.Request) (id string, err error) // of the thing, if the reader may change it
	Change func(ctx context.Context, request unitofwork.Request, id, text string) (T, error)
	Again  func(w http.ResponseWriter, r *http.Request, status int, text string, fault error) error // shows the form with its fault
	Flash  string
	Back   string // address of the next page
}

// Submit executes the form.
func (f TextForm[T]) Submit(k *Kit) Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := ui.ReadForm(w, r); err != nil {
			return err
		}
		id, err := f.ID(r)
		if err != nil {
			return err
		}
		text := r.PostForm.Get(f.Field)
		_, err = f.Change(r.Context(), k.RequestOf(r), id, text)
		if IsInvalid(err) {
			return f.Again(w, r, http.StatusUnprocessableEntity, text, err)
		}
		if err != nil {
			return ProblemOf(err, f.What, id)
		}
		return Done(w, r, f.Flash, f.Back)
	}
}

// Done redirects to a page after a form was
// executed. The page shows the flash of that name.
func Done(w http.ResponseWriter, r *http.Request, flash, path string) error {
	ui.SetFlash(w, flash)
	http.Redirect(w, r, path, http.StatusSeeOther)
	return nil
}

// ReasonField is the field for the reason of a revocation.
func ReasonField(value string, fault error) ui.Field {
	return ui.Field{
		Name: "reason", Label: "Reason", Value: value, Fault: FaultOf(fault, "reason"), MaxLength: 500, Optional: true, Autocomplete: "off",
		Hint: "For those who look at this later, such as replaced by another, or leaked.",
	}
}
