package http

import (
	_ "embed"
	"errors"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
)

//go:embed openapi.json
var openAPI []byte

// An API serves API keys.
type API struct {
	Service  *groups.Service
	Guard    *identity.Guard
	Projects *identity.Directory
}

// Mount adds the routes.
func (a *API) Mount(router chi.Router) {
	httpapi.Describe(router, "grouping", openAPI)
	router.Group(func(router chi.Router) {
		router.Use(a.Guard.RequireAPIKey())
		router.Get("/v1/projects/{project}/error-groups", httpapi.Handle(a.groups))
		router.Get("/v1/error-groups/{group}", httpapi.Handle(a.group))
		router.Get("/v1/error-groups/{group}/similar", httpapi.Handle(a.similar))
	})
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
