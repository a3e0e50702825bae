package pages

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/weirlog/weir/shared/fairshare"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants/internal/password"
)

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
