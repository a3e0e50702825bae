package registry

import (
	_ "embed"
	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/tenants/internal/api"
)

// OpenAPI describes the routes of the room.
//
//go:embed openapi.json
var OpenAPI []byte

// An API serves organizations, projects, service tokens and
// security policies to service tokens.
type API struct {
	*api.Kit
	Services
}

// NewAPI returns the API of some services.
func NewAPI(kit *api.Kit, services Services) API { return API{kit, services} }

// Mount adds the routes to router.
func (a API) Mount(admin chi.Router) {
	admin.Post("/v1/organizations", httpapi.Handle(a.createOrganization))
	admin.Get("/v1/organizations", httpapi.Handle(a.listOrganizations))
	admin.Get("/v1/organizations/{id}", api.ShowHandler("organization", a.Organizations.Organization, showOrganization))
	admin.Patch("/v1/organizations/{id}", api.ChangeHandler(a.Kit, "organization", api.NameOf, a.Organizations.Rename, showOrganization))
	admin.Post("/v1/projects", httpapi.Handle(a.createProject))
	admin.Get("/v1/projects", api.ListHandler("organization", api.OneOrganizationOf, a.Projects.List, showProject, placeOfProject))
	admin.Patch("/v1/projects/{id}", api.ChangeHandler(a.Kit, "project", api.NameOf, a.Projects.Rename, showProject))
	admin.Delete("/v1/organizations/{id}", a.deleting("organization", a.Deletions.DeleteOrganization))
	admin.Post("/v1/organizations/{id}/restore", api.ChangeHandler(a.Kit, "organization", api.NoBody, api.WithoutBody(a.Deletions.Restore), showDeletion))
	admin.Delete("/v1/projects/{id}", a.deleting("project", a.Deletions.DeleteProject))
	admin.Post("/v1/projects/{id}/restore", api.ChangeHandler(a.Kit, "project", api.NoBody, api.WithoutBody(a.Deletions.Restore), showDeletion))
	admin.Get("/v1/deletions", api.ListHandler("organization", api.OneOrganizationOf, a.Deletions.List, showListedDeletion, placeOfDeletion))
	admin.Get("/v1/organizations/{id}/security-policy", api.ShowHandler("organization", a.Policies.Policy, showSecurityPolicy))
	admin.Put("/v1/organizations/{id}/security-policy",
		api.ChangeHandler(a.Kit, "organization", securityPolicyOf, a.Policies.Set, showSecurityPolicy))
	admin.Post("/v1/service-tokens", httpapi.Handle(a.createServiceToken))
	admin.Get("/v1/service-tokens", api.ListHandler("organization", api.OrganizationOf, a.Tokens.List, showServiceToken, placeOfServiceToken))
	admin.Post("/v1/service-tokens/{id}/revoke", api.ChangeHandler(a.Kit, "service token", api.ReasonOf, a.Tokens.Revoke, showServiceToken))
}
