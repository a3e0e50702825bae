package pages

import (
	"net/http"

	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
)

// Addresses of the pages.
const (
	OrganizationPath  = "/console/settings/organization"
	MembersPath       = "/console/settings/members"
	ProjectsPath      = "/console/settings/projects"
	APIKeysPath       = "/console/settings/api-keys"
	ServiceTokensPath = "/console/settings/service-tokens"
	WebhooksPath      = "/console/settings/webhooks"
	SecurityPath      = "/console/settings/security"
	DeletionsPath     = "/console/settings/deletions"
	AuditPath         = "/console/settings/audit"
	AccountPath       = "/console/settings/account"
)

// A settingsPage is an entry of the settings'
// navigation, for the roles that may read the page.
type settingsPage struct {
	text  string
	path  string
	needs tenants.Permission // "": everybody may
}

// settingsPages are all of them, in their order.
var settingsPages = []settingsPage{
	{"Organization", OrganizationPath, tenants.OrganizationRead},
	{"Members", MembersPath, tenants.MembersRead},
	{"Projects", ProjectsPath, tenants.ProjectsRead},
	{"API Keys", APIKeysPath, tenants.APIKeysRead},
	{"Service tokens", ServiceTokensPath, tenants.ServiceTokensRead},
	{"Webhooks", WebhooksPath, tenants.WebhooksManage},
	{"Security", SecurityPath, tenants.SecurityWrite},
	{"Deletions", DeletionsPath, tenants.DeletionsManage},
	{"Audit log", AuditPath, tenants.AuditRead},
	{"Your account", AccountPath, ""},
}

// Tabs are the settings that the reader may see, with the one at path marked.
func Tabs(r *http.Request, path string) (links []ui.Link) {
	role := RoleOf(r)
	for _, page := range settingsPages {
		if page.needs == "" || role.May(page.needs) {
			links = append(links, ui.Link{Text: page.text, Href: page.path, Current: page.path == path})
		}
	}
	return links
}

// showSettings redirects to the first page that the reader may see.
func showSettings(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, Tabs(r, "")[0].Href, http.StatusSeeOther)
}
