package signin

import (
	"errors"
	"net/http"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/pages"
)

// problemOf adds this room's errors to pages.ProblemOf.
func problemOf(err error, what, id string) error {
	switch {
	case errors.Is(err, ErrPasswordsOff):
		return httpapi.NewProblem(http.StatusConflict, "passwords_off",
			"Your organization has switched passwords off: members sign in with passkeys or by the identity provider.")
	case errors.Is(err, ErrLastSignInMethod):
		return httpapi.NewProblem(http.StatusConflict, "last_way",
			"This passkey is the only way in that you have while passwords are switched off. Add another one first.")
	}
	return pages.ProblemOf(err, what, id)
}

// ended adds this room's errors to pages.Ended.
func ended(err error) error {
	if errors.Is(err, tenants.ErrNotFound) {
		return pages.Ended(err)
	}
	return problemOf(err, "session", "")
}
