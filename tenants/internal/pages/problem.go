package pages

import (
	"errors"
	"net/http"
	"time"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/tenants"
)

// ProblemOf is the page for an error about the thing called what,
// with the id. Faults of a form are shown beside its fields instead.
func ProblemOf(err error, what, id string) error {
	var full tenants.LimitReached
	switch {
	case errors.As(err, &full):
		return httpapi.NewProblem(http.StatusConflict, "limit_reached", full.Error())
	case errors.Is(err, tenants.ErrNotFound):
		return httpapi.NotFound(what, id)
	case errors.Is(err, tenants.ErrForbidden):
		return httpapi.NewProblem(http.StatusForbidden, httpapi.CodeForbidden,
			"Your role was changed meanwhile and may not do this any more. Ask an owner.")
	case errors.Is(err, tenants.ErrLastOwner):
		return httpapi.NewProblem(http.StatusConflict, "last_owner",
			"This is the only owner of the organization, or the only one who could sign in where passwords are switched off. "+
				"Make another member owner first, who has a passkey or uses the identity provider.")
	case errors.Is(err, tenants.ErrSettled):
		return httpapi.NewProblem(http.StatusConflict, httpapi.CodeConflict,
			"The invitation was accepted or revoked before. Make another one.")
	case errors.Is(err, tenants.ErrReused):
		return httpapi.NewProblem(http.StatusConflict, httpapi.CodeConflict,
			"This form was sent before with other values. Open the page again and fill it in again.")
	case errors.Is(err, tenants.ErrWebhookOff):
		return httpapi.NewProblem(http.StatusConflict, "webhook_off", "The webhook is switched off. Switch it on first.")
	case errors.Is(err, tenants.ErrWebhookRotated):
		return httpapi.NewProblem(http.StatusConflict, "webhook_rotated",
			"The webhook was rotated less than a day ago, and its old secret still signs too. Rotate it again when that has ended.")
	case errors.Is(err, eventstore.ErrConflict):
		return httpapi.Unavailable("Too many changes at once. Go back and send the form again.", time.Second)
	}
	return err
}
