package api

import (
	"net/http"
	"slices"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
)

// What statuses mean in several rooms.
const (
	Unknown      = "Unknown, or of another organization: nobody can tell which"
	LimitReached = "limit_reached: the organization has as many as it may; `detail` says what makes room"
)

var module = openapi.Module{
	Name: "tenants", Tag: "tenants", Description: "Organizations, projects, API keys, service tokens and members",
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
