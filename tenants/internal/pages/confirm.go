package pages

import (
	"net/http"
	"time"

	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
)

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
