package http

import (
	"errors"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/grouping/internal/postgres"
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
	for _, operation := range a.operations() {
		operation.Mount(router.With(a.Guard.RequireAPIKey()))
	}
}

var module = openapi.Module{
	Name: "grouping", Tag: "grouping", Description: "Which of the errors in the logs are the same", Credential: openapi.APIKey,
	Problems: map[int]string{
		http.StatusBadRequest:          "A parameter is wrong; the answer names it",
		http.StatusUnauthorized:        "The API key is missing or not valid",
		http.StatusForbidden:           "forbidden: the key may only send logs (access write)",
		http.StatusTooManyRequests:     "rate_limited: the organization, the project or the credential asks too often. Wait for Retry-After",
		http.StatusInternalServerError: "The request failed by no fault of the client",
	},
}

// OpenAPI describes the routes.
func OpenAPI() []byte { return module.Document(new(API).operations()) }

func (a *API) operations() []openapi.Operation {
	noGroup := map[int]string{http.StatusNotFound: "There is no such group in the key's organization"}
	return []openapi.Operation{
		{
			Route: "GET /v1/projects/{project}/error-groups", Handle: a.groups, ID: "listErrorGroups",
			Summary: "The error groups of a project, the one last seen first",
			Query:   groupsQuery{},
			Answer: openapi.Answer{
				Type: errorGroupListBody{}, Description: "A page of groups. It may end before its limit: its groups hold at most 1 MiB of text",
			},
			Problems: map[int]string{http.StatusNotFound: "There is no such project in the key's organization"},
		},
		{
			Route: "GET /v1/error-groups/{group}", Handle: a.group, ID: "getErrorGroup",
			Summary:  "An error group, some of its occurrences, and how it came to be one",
			Query:    struct{}{},
			Answer:   openapi.Answer{Type: errorGroupDetailBody{}, Description: "The group"},
			Problems: noGroup,
		},
		{
			Route: "GET /v1/error-groups/{group}/similar", Handle: a.similar, ID: "listSimilarErrorGroups",
			Summary:  "Error groups of the project that may be about the same thing, the most alike first, and how their calls differ",
			Query:    struct{}{},
			Answer:   openapi.Answer{Type: similarErrorGroupListBody{}, Description: "The groups that are most like it, at most 20"},
			Problems: noGroup,
		},
	}
}

// mayRead reports whether the caller may read the project: one of
// its organization, or only the key's own if it is bound to one.
// The key's own project counts before its creation is consumed.
func (a *API) mayRead(r *http.Request, project string) bool {
	principal := identity.FromContext(r.Context())
	return principal.ReadsProject(project) && (a.Projects.Owns(principal.Organization, project) || project != "" && project == principal.Project)
}

// notFound maps missing and foreign groups to 404.
func notFound(err error, id string) error {
	if errors.Is(err, postgres.ErrNoGroup) {
		return httpapi.NotFound("error group", id)
	}
	return err
}
