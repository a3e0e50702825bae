package registry

import (
	"embed"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/pages"
)

//go:embed templates/*.html
var templates embed.FS

// Pages are the pages of the organization, its projects, service
// tokens and security policy.
type Pages struct {
	pages.Set
	Services
}

// NewPages returns the pages of some services.
func NewPages(kit *pages.Kit, services Services) Pages { return Pages{kit.Of(templates), services} }

// Mount adds the pages to the settings.
func (p Pages) Mount(settings chi.Router) {
	settings.Get(pages.OrganizationPath, p.For(tenants.OrganizationRead, p.showOrganization))
	settings.Post(pages.OrganizationPath, p.For(tenants.OrganizationWrite, p.renameOrganization()))
	settings.Get(pages.ProjectsPath, p.For(tenants.ProjectsRead, p.showProjects))
	settings.Post(pages.ProjectsPath, p.For(tenants.ProjectsWrite, p.createProject))
	settings.Get(pages.ProjectsPath+"/{id}", p.For(tenants.ProjectsWrite, p.showProject))
	settings.Post(pages.ProjectsPath+"/{id}", p.For(tenants.ProjectsWrite, p.renameProject()))
	settings.Get(pages.ProjectsPath+"/{id}/delete", p.Confirmed(tenants.DeletionsManage, p.showDeleteProject))
	settings.Post(pages.ProjectsPath+"/{id}/delete", p.Confirmed(tenants.DeletionsManage, p.deleteProject))
	settings.Post(pages.ProjectsPath+"/{id}/restore", p.Confirmed(tenants.DeletionsManage, p.restoreProject))
	settings.Get(pages.OrganizationPath+"/delete", p.Confirmed(tenants.DeletionsManage, p.showDeleteOrganization))
	settings.Post(pages.OrganizationPath+"/delete", p.Confirmed(tenants.DeletionsManage, p.deleteOrganization))
	settings.Get(pages.DeletionsPath, p.For(tenants.DeletionsManage, p.showDeletions))
	settings.Get(pages.ServiceTokensPath, p.For(tenants.ServiceTokensRead, p.showServiceTokens))
	settings.Get(pages.ServiceTokensPath+"/new", p.Confirmed(tenants.ServiceTokensWrite, p.showNewServiceToken))
	settings.Post(pages.ServiceTokensPath, p.Confirmed(tenants.ServiceTokensWrite, p.createServiceToken))
	settings.Get(pages.ServiceTokensPath+"/{id}/revoke", p.Confirmed(tenants.ServiceTokensWrite, p.showRevokeServiceToken))
	settings.Post(pages.ServiceTokensPath+"/{id}/revoke", p.Confirmed(tenants.ServiceTokensWrite, p.revokeServiceToken()))
	settings.Get(pages.SecurityPath, p.Confirmed(tenants.SecurityWrite, p.showSecurity))
	settings.Post(pages.SecurityPath, p.Confirmed(tenants.SecurityWrite, p.setSecurity))
}
