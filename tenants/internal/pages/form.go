package pages

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/weirlog/weir/shared/fairshare"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/password"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// FaultOf is the fault of one field as text, or "".
func FaultOf(err error, field string) string {
	var invalid tenants.Invalid
	if !errors.As(err, &invalid) {
		return ""
	}
	for _, fault := range invalid {
		if fault.Field == field {
			return sentence(fault.Detail) + " " + fault.Fix
		}
	}
	return ""
}

// sentence capitalizes text: faults begin with the field's name in the API.
func sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

// IsInvalid reports whether an error is about a form's fields.
func IsInvalid(err error) bool {
	var invalid tenants.Invalid
	return errors.As(err, &invalid)
}

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

// NewPassword is the field for a chosen password.
func NewPassword(err error) ui.Field {
	return ui.Field{
		Name: "password", Label: "Password", Type: "password", Fault: FaultOf(err, "password"), Autocomplete: "new-password",
		Required: true, Hint: "At least 12 characters; several words are easier to remember than signs.",
	}
}

// TooMany shows how long to wait, the same for known
// and unknown addresses. Repeated refusals are delayed.
func (k *Kit) TooMany(w http.ResponseWriter, r *http.Request, wait time.Duration) *ui.Flash {
	seconds := int64((wait + time.Second - 1) / time.Second)
	w.Header().Set("Retry-After", strconv.FormatInt(seconds, 10))
	k.delay(r)
	httpapi.Logger(r.Context()).Warn("too many attempts to sign in or to confirm")
	return &ui.Flash{Text: fmt.Sprintf("There were too many attempts. Wait %d seconds and try again.", seconds), Fault: true}
}

// IsBusy reports whether a request was refused because too many others wait.
func IsBusy(err error) bool {
	return errors.Is(err, password.ErrBusy) || errors.Is(err, fairshare.ErrFull) || errors.Is(err, fairshare.ErrTooMany)
}

// Busy shows when to try again while the queue is full, the
// same for known and unknown addresses, and delayed as well.
func (k *Kit) Busy(w http.ResponseWriter, r *http.Request) *ui.Flash {
	seconds := int64(password.RetryAfter / time.Second)
	w.Header().Set("Retry-After", strconv.FormatInt(seconds, 10))
	k.delay(r)
	httpapi.Logger(r.Context()).Warn("too many passwords are waiting to be hashed")
	return &ui.Flash{Text: fmt.Sprintf("Too many people are signing in at this moment. Try again in %d seconds.", seconds), Fault: true}
}

func (k *Kit) delay(r *http.Request) {
	k.refusals.Hold(r.Context(), k.Clock(), httpapi.ClientNetwork(httpapi.ClientAddress(r, k.TrustedProxies)))
}

// ConfirmPath is where members prove their identity again.
const ConfirmPath = "/console/confirm"

// How long a proof of identity lasts: pages with forms are
// shown for ConfirmLifetime, and their forms accepted for
// formLifetime longer, so that there is time to fill them in.
const (
	ConfirmLifetime = 10 * time.Minute
	formLifetime    = 5 * time.Minute
)

// RequireConfirmed passes those who recently proved their identity.
// Others must before they see a page; a late form is refused, and
// its sender reads how to send it again without losing input. So
// wrap the page of a form together with its target.
func (k *Kit) RequireConfirmed(next Handler) Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		age := k.Clock().Sub(identity.FromContext(r.Context()).AuthenticatedAt)
		looking := r.Method == http.MethodGet || r.Method == http.MethodHead
		switch {
		case age < ConfirmLifetime, !looking && age < ConfirmLifetime+formLifetime:
			return next(w, r)
		case looking:
			http.Redirect(w, r, WithDestination(ConfirmPath, r), http.StatusSeeOther)
		default:
			k.own.Write(w, r, http.StatusForbidden, "confirm-again", ui.View{Title: "Nothing was done yet", Data: ConfirmPath})
		}
		return nil
	}
}
