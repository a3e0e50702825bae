package api

import (
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/changes"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// AdminScope is the scope of routes that have no other.
const AdminScope = "tenants:admin"

// A Kit makes the rooms' handlers.
type Kit struct {
	Guard          *identity.Guard
	Clock          func() time.Time
	TrustedProxies []netip.Prefix // whose X-Forwarded-For is trusted
}

// Mount adds the rooms' routes and their description.
func (k *Kit) Mount(router chi.Router, changed *changes.Limiter, operations []openapi.Operation) {
	httpapi.Describe(router, module.Name, Describe(operations))
	for _, operation := range withScopes(operations) {
		if operation.IsOpen() {
			operation.Mount(router)
			continue
		}
		scoped := k.Guard.RequireScope(operation.Scopes[0], operation.Scopes[1:]...)
		operation.Mount(router.With(scoped, changed.Limit(httpapi.Handle), changes.Whole, scoped))
	}
}

// CallerOf is the sender of a request.
func CallerOf(r *http.Request) tenants.Caller {
	principal := identity.FromContext(r.Context())
	caller := tenants.Caller{ID: principal.ID, Organization: principal.Organization, Scopes: principal.Scopes}
	if principal.Organization == "" {
		caller.Organization = tenants.Installation
	}
	return caller
}

// RequestOf is a request to change something.
func (k *Kit) RequestOf(r *http.Request) (unitofwork.Request, error) {
	key, err := httpapi.IdempotencyKey(r)
	return unitofwork.Request{
		Caller: CallerOf(r), Address: httpapi.ClientAddress(r, k.TrustedProxies), Client: r.UserAgent(),
		ID: httpapi.RequestID(r.Context()), IdempotencyKey: key,
	}, err
}

// RequestWith is a request to change
// something. It decodes the body into body.
func (k *Kit) RequestWith(w http.ResponseWriter, r *http.Request, body any) (unitofwork.Request, error) {
	request, err := k.RequestOf(r)
	if err != nil {
		return request, err
	}
	return request, httpapi.ReadJSON(w, r, body)
}

// What statuses mean in several rooms.
const (
	Unknown      = "Unknown, or of another organization: nobody can tell which"
	LimitReached = "limit_reached: the organization has as many as it may; `detail` says what makes room"
)

var module = openapi.Module{
	Name: "tenants", Tag: "organizations", Description: "Organizations, projects, API keys, service tokens and members",
	Credential: openapi.ServiceToken, Problem: problemBody{},
	Problems: map[int]string{
		http.StatusBadRequest:   "A value can't be accepted: errors[] says which and what to do",
		http.StatusUnauthorized: "No valid service token",
		http.StatusForbidden:    "The token may not do this",
		http.StatusNotFound:     Unknown,
		http.StatusTooManyRequests: "rate_limited: the organization, the project or the credential asks, or the organization changes something, too often. " +
			"Wait for Retry-After",
		http.StatusInternalServerError: "Not done: send the whole request again",
	},
}

type problemBody struct {
	httpapi.ProblemBody
	Limit int `json:"limit,omitempty" description:"limit_reached: how many there may be"`
}

// Describe describes the rooms' operations.
func Describe(operations []openapi.Operation) []byte { return module.Document(withScopes(operations)) }

// withScopes returns operations with AdminScope where they name none.
func withScopes(operations []openapi.Operation) []openapi.Operation {
	scoped := slices.Clone(operations)
	for i := range scoped {
		if len(scoped[i].Scopes) == 0 {
			scoped[i].Scopes = []string{AdminScope}
		}
	}
	return scoped
}

// OrganizationQuery is the query of a list of an organization's.
type OrganizationQuery struct {
	Organization string `query:"organization" maxLength:"64" description:"Left out: the one that the token is bound to"`
	httpapi.Page
}

// Creation is the headers of a request to create something.
type Creation struct {
	Key string `header:"Idempotency-Key" minLength:"1" maxLength:"255" pattern:"^[ -~]+$" description:"The same key again with the same request creates nothing more. Where the answer held a secret, the repetition is a 409: the secret is not kept"`
}

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

// Reason is null unless revoked.
func Reason(revocation tenants.Revocation) *string {
	if revocation.At.IsZero() {
		return nil
	}
	return &revocation.Reason
}
