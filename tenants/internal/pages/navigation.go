package pages

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
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

// home is where a member starts.
const home = "/console"

// maxDestination is the longest destination, in bytes.
const maxDestination = 2000

// Destination is where an intermediate page, such as the
// sign-in, leads back to: the parameter to. As it can be
// forged, it must be a page of this console, else home.
func Destination(r *http.Request) string {
	to := r.URL.Query().Get("to")
	if r.Method == http.MethodPost {
		to = r.PostForm.Get("to")
	}
	if isPage(to) {
		return to
	}
	return home
}

func isPage(to string) bool {
	if len(to) > maxDestination || strings.ContainsFunc(to, isNoAddress) {
		return false
	}
	parsed, err := url.Parse(to)
	if err != nil || parsed.IsAbs() || parsed.Host != "" || parsed.User != nil || !strings.HasPrefix(to, "/") {
		return false
	}
	return path.Clean(parsed.Path) == parsed.Path && strings.HasPrefix(parsed.Path, "/console/") && !isIntermediate(parsed.Path)
}

// isNoAddress finds characters that browsers drop or read differently.
func isNoAddress(r rune) bool {
	return r <= ' ' || r >= 0x7f || r == '\\'
}

// isIntermediate reports whether a page only leads on to others.
func isIntermediate(page string) bool {
	for _, detour := range []string{"/console/session", "/console/sign-in", "/console/sign-out"} {
		if page == detour || strings.HasPrefix(page, detour+"/") {
			return true
		}
	}
	return false
}

// WithDestination is the address of an
// intermediate page that leads back to r's.
func WithDestination(page string, r *http.Request) string {
	return page + "?to=" + url.QueryEscape(r.URL.RequestURI())
}

// permitted passes readers whose role has a permission.
func permitted(p tenants.Permission, next Handler) Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := Need(r, p); err != nil {
			return err
		}
		return next(w, r)
	}
}

// Need refuses a reader whose role lacks a
// permission, and names the roles that have it.
func Need(r *http.Request, p tenants.Permission) error {
	role := RoleOf(r)
	if role.May(p) {
		return nil
	}
	return httpapi.NewProblem(http.StatusForbidden, httpapi.CodeForbidden,
		"Your role here is "+string(role)+", which may not "+permissionText(p)+". "+rolesText(p)+".")
}

// rolesText lists the roles with a permission.
func rolesText(p tenants.Permission) string {
	roles := tenants.RolesWith(p)
	if len(roles) == 1 {
		return "Ask an " + string(roles[0])
	}
	words := make([]string, len(roles))
	for i, role := range roles {
		words[i] = string(role)
	}
	return "Ask one of the " + ui.Roles(words, "or")
}

// permissionText is what a permission allows, to follow "may".
func permissionText(p tenants.Permission) string {
	switch p {
	case tenants.OrganizationRead:
		return "see the organization"
	case tenants.OrganizationWrite:
		return "change the organization"
	case tenants.SecurityWrite:
		return "see or change the security policy"
	case tenants.MembersRead:
		return "see the members"
	case tenants.MembersInvite:
		return "invite people"
	case tenants.MembersManage:
		return "change or remove members"
	case tenants.OwnersManage:
		return "make, change or remove owners"
	case tenants.DeletionsManage:
		return "delete the organization or projects"
	case tenants.ProjectsRead:
		return "see the projects"
	case tenants.ProjectsWrite:
		return "create or change projects"
	case tenants.APIKeysRead:
		return "see the API keys"
	case tenants.APIKeysWrite:
		return "create, change or revoke API keys"
	case tenants.APIKeysWriteProd:
		return "create, change or revoke API keys of prod"
	case tenants.ServiceTokensRead:
		return "see the service tokens"
	case tenants.ServiceTokensWrite:
		return "create or revoke service tokens"
	case tenants.AuditRead:
		return "read the audit log"
	case tenants.LogsRead:
		return "read the logs"
	case tenants.ErrorsRead:
		return "read the errors"
	case tenants.ErrorsDecide:
		return "resolve, ignore or assign errors"
	case tenants.UsageRead:
		return "see the usage"
	case tenants.SearchesShare:
		return "save searches for everybody"
	case tenants.BudgetsManage:
		return "set budgets"
	case tenants.WebhooksManage:
		return "see or change webhooks"
	case tenants.MailsReceive:
		return "get mail"
	}
	return "do this"
}

// PageSize is how many rows a list shows at once.
const PageSize = 50

// ListOf finds the rows of a list, and links to the other pages. find returns
// at most limit rows after a position, and place is a row's position.
func ListOf[T any](r *http.Request, find func(from query.Position, limit int) ([]T, error), place func(T) query.Position) ([]T, ui.Pager, error) {
	var from query.Position
	if cursor := r.URL.Query().Get("cursor"); cursor != "" {
		if err := httpapi.DecodeCursor(r, cursor, &from); err != nil {
			return nil, ui.Pager{}, err
		}
	}
	found, err := find(from, PageSize+1)
	if err != nil {
		return nil, ui.Pager{}, err
	}
	list := httpapi.NewList(r, found, PageSize, func(last T) any { return place(last) })
	return list.Items, ui.NewPager(r, list.NextCursor), nil
}

// A ShownCapacity is a tenants.Capacity as text.
type ShownCapacity struct {
	Text string
	Full bool // no more can be added
}

// CapacityOf is the capacity in the reader's organization, as text.
func CapacityOf(r *http.Request, find func(ctx context.Context, caller tenants.Caller) (tenants.Capacity, error)) (ShownCapacity, error) {
	capacity, err := find(r.Context(), CallerOf(r))
	if capacity.Full() {
		return ShownCapacity{tenants.LimitReached{What: capacity.What, Limit: capacity.Limit}.Error(), true}, err
	}
	return ShownCapacity{Text: fmt.Sprintf("%s of at most %s %s.", ui.Count(int64(capacity.Have)), ui.Count(int64(capacity.Limit)), capacity.What)}, err
}
