package console

import (
	"net/http"

	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
)

// Addresses of the pages.
const (
	organizationPath  = "/console/settings/organization"
	membersPath       = "/console/settings/members"
	projectsPath      = "/console/settings/projects"
	apiKeysPath       = "/console/settings/api-keys"
	serviceTokensPath = "/console/settings/service-tokens"
	securityPath      = "/console/settings/security"
	auditPath         = "/console/settings/audit"
	accountPath       = "/console/settings/account"
)

// A settingsPage is an entry of the settings' navigation, for the roles that may see the page.
type settingsPage struct {
	text  string
	path  string
	needs tenants.Permission // "": everybody may
}

// settingsPages are all of them, in their order.
var settingsPages = []settingsPage{
	{"Organization", organizationPath, tenants.OrganizationRead},
	{"Members", membersPath, tenants.MembersRead},
	{"Projects", projectsPath, tenants.ProjectsRead},
	{"API Keys", apiKeysPath, tenants.APIKeysRead},
	{"Service tokens", serviceTokensPath, tenants.ServiceTokensRead},
	{"Security", securityPath, tenants.SecurityWrite},
	{"Audit log", auditPath, tenants.AuditRead},
	{"Your account", accountPath, ""},
}

// tabs are the pages of the settings that the reader may see, who is on the one at path.
func tabs(r *http.Request, path string) (links []ui.Link) {
	role := roleOf(r)
	for _, page := range settingsPages {
		if page.needs == "" || role.May(page.needs) {
			links = append(links, ui.Link{Text: page.text, Href: page.path, Current: page.path == path})
		}
	}
	return links
}

// showSettings leads to the first page that the reader may see.
func showSettings(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, tabs(r, "")[0].Href, http.StatusSeeOther)
}
