package ui

import (
	"net/http"
	"strings"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
)

// A Section is an entry of the console's navigation; each page belongs to one.
type Section string

// The sections.
const (
	Logs     Section = "Logs"
	Errors   Section = "Errors"
	Usage    Section = "Usage"
	Settings Section = "Settings"
)

// sections are all sections, in the order of the navigation.
var sections = []struct {
	section Section
	path    string
	read    identity.Read // "": the settings, whose pages each have a permission
	deed    string        // completes "may …"
}{
	{Logs, "/console/logs", identity.ReadLogs, "read the logs"},
	{Errors, "/console/errors", identity.ReadErrors, "read the errors"},
	{Usage, "/console/usage", identity.ReadUsage, "see the usage"},
	{Settings, "/console/settings", "", ""},
}

// navigation returns links to the sections that the reader may see;
// current is the reader's.
func navigation(r *http.Request, current Section) (links []Link) {
	reader, known := identity.PrincipalOf(r.Context())
	for _, s := range sections {
		if s.read == "" || !known || reader.MayRead(s.read) {
			links = append(links, Link{string(s.section), s.path, current == s.section})
		}
	}
	return links
}

// Home returns a member's first page: the first section that the role may see.
func Home(member identity.Principal) string {
	for _, s := range sections {
		if s.read == "" || member.MayRead(s.read) {
			return s.path
		}
	}
	panic("BUG: there is no section for everybody")
}

// permit refuses members whose role may not read the section, and names
// the roles to ask.
func (p *Pages) permit(next http.Handler) http.Handler {
	return p.Handle(func(w http.ResponseWriter, r *http.Request) error {
		reader := identity.FromContext(r.Context())
		for _, s := range sections {
			if s.section == p.section && s.read != "" && !reader.MayRead(s.read) {
				return httpapi.NewProblem(http.StatusForbidden, httpapi.CodeForbidden,
					"Your role here is "+reader.Role()+", which may not "+s.deed+". Ask one of the "+whoMay(s.read)+".")
			}
		}
		next.ServeHTTP(w, r)
		return nil
	})
}

// whoMay names the members whose role may see something.
func whoMay(read identity.Read) string {
	roles := identity.RolesThatRead(read)
	last := len(roles) - 1
	return strings.Join(roles[:last], "s, ") + "s or " + roles[last] + "s"
}
