package api

import (
	"errors"
	"net/http"
	"time"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/tenants"
)

// ProblemOf is the response to an error about the thing called
// what, with the id. Unknown and foreign ones look the same.
func ProblemOf(err error, what, id string) error {
	var invalid tenants.Invalid
	var full tenants.LimitReached
	switch {
	case err == nil:
		return nil
	case errors.As(err, &full):
		return httpapi.NewProblem(http.StatusConflict, "limit_reached", full.Error()).With("limit", full.Limit)
	case errors.As(err, &invalid):
		return invalidProblem(invalid)
	case errors.Is(err, tenants.ErrNotFound):
		return httpapi.NotFound(what, id)
	case errors.Is(err, tenants.ErrForbidden):
		return httpapi.NewProblem(http.StatusForbidden, httpapi.CodeForbidden,
			"The service token may not do this. Whatever concerns owners (inviting, changing and removing them, their passwords and "+
				"sessions), creating organizations, adding members with a password and switching passwords on or off takes a token that is bound to the installation; "+
				"granting a scope takes a token that holds it.")
	case errors.Is(err, tenants.ErrLastOwner):
		return httpapi.NewProblem(http.StatusConflict, "last_owner",
			"This is the only owner of the organization, or the only one who could sign in where passwords are switched off. "+
				"Make another member owner first, who has a passkey or uses the identity provider.")
	case errors.Is(err, tenants.ErrSettled):
		return httpapi.NewProblem(http.StatusConflict, httpapi.CodeConflict,
			"The invitation was accepted or revoked before. Make another one.")
	case errors.Is(err, tenants.ErrReused):
		return httpapi.IdempotencyKeyReused()
	case errors.Is(err, tenants.ErrShownOnce):
		return httpapi.NewProblem(http.StatusConflict, "secret_shown_once",
			"The same request was answered before, and the secret was in that answer only. "+
				"If it is lost, revoke it and create another with a new Idempotency-Key.")
	case errors.Is(err, tenants.ErrKeyRevoked):
		return httpapi.NewProblem(http.StatusConflict, "api_key_revoked", "The API key is revoked: it can't be rotated or changed. Create a new one.")
	case errors.Is(err, tenants.ErrKeyExpired):
		return httpapi.NewProblem(http.StatusConflict, "api_key_expired", "The API key has expired: it can't be rotated or changed. Create a new one.")
	case errors.Is(err, tenants.ErrKeyRotated):
		return httpapi.NewProblem(http.StatusConflict, "api_key_rotated",
			"The API key was rotated already: rotated_to names the key that takes its place. Rotate that one, or revoke this one.")
	case errors.Is(err, tenants.ErrWebhookOff):
		return httpapi.NewProblem(http.StatusConflict, "webhook_off", "The webhook is switched off. Switch it on first.")
	case errors.Is(err, tenants.ErrWebhookRotated):
		return httpapi.NewProblem(http.StatusConflict, "webhook_rotated",
			"The webhook was rotated less than a day ago, and its old secret still signs too. Rotate it again when that has ended.")
	case errors.Is(err, tenants.ErrBegun):
		return httpapi.NewProblem(http.StatusConflict, httpapi.CodeConflict, "The deletion has begun: nothing brings back what is being erased.")
	case errors.Is(err, eventstore.ErrErased):
		return httpapi.NewProblem(http.StatusConflict, httpapi.CodeConflict,
			"What the same request created before was deleted since. Send a new Idempotency-Key to create another.")
	case errors.Is(err, eventstore.ErrConflict):
		return httpapi.Unavailable("Too many changes at once. Send the request again.", time.Second)
	}
	return err
}

func invalidProblem(invalid tenants.Invalid) error {
	problem := httpapi.NewProblem(http.StatusBadRequest, httpapi.CodeInvalidRequest, invalid.Error())
	for _, fault := range invalid {
		problem.Faults = append(problem.Faults, httpapi.Fault{
			Pointer: "/" + fault.Field, Code: httpapi.CodeInvalidRequest, Detail: fault.Detail, Fix: fault.Fix,
		})
	}
	return problem
}
