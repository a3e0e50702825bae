package http

import (
	"net/http"
	"slices"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/shared/identity"
)

// An API serves API keys.
type API struct {
	Service  *groups.Service
	Guard    *identity.Guard
	Projects *identity.Directory
}

// Mount adds the routes.
func (a *API) Mount(router chi.Router) {
	httpapi.Describe(router, module.Name, OpenAPI())
	for _, operation := range operations(a.Service, a.Projects, a.Guard) {
		operation.Mount(router.With(a.Guard.RequireAPIKey()))
	}
}

var module = openapi.Module{
	Name: "grouping", Tag: "errors", Description: "Which of the errors in the logs are the same", Credential: openapi.APIKey,
	Problem: problemBody{},
	Problems: map[int]string{
		http.StatusBadRequest:          "A parameter is wrong; the answer names it",
		http.StatusUnauthorized:        "The API key is missing or not valid",
		http.StatusForbidden:           "forbidden: the key may only send logs (access write)",
		http.StatusTooManyRequests:     "rate_limited: the organization, the project or the credential asks too often. Wait for Retry-After",
		http.StatusInternalServerError: "The server failed",
	},
}

// OpenAPI describes the routes.
func OpenAPI() []byte { return module.Document(operations(&groups.Service{}, nil, nil)) }

func operations(s *groups.Service, projects *identity.Directory, guard *identity.Guard) []openapi.Operation {
	a := &access{guard, projects, s.Groups}
	return slices.Concat(
		decisionOperations(a, s.Decisions), mergeOperations(a, s.Merges), sourceMapOperations(a, s.SourceMaps), countOperations(a, s.Groups),
		settingOperations(a, s.Settings), ruleOperations(a, s.Rules), alertOperations(a, s.Alerts), ownerOperations(a, s.Owners),
		groupOperations(a, s.Groups), occurrenceOperations(a, s.Occurrences),
	)
}
