package console

import (
	"cmp"
	"embed"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/idempotency"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
)

//go:embed templates/*.html
var templates embed.FS

// groupsPath is the list of groups; all pages are below it.
const groupsPath = "/console/errors"

// Config is what the pages need.
type Config struct {
	Service   *groups.Service
	Directory *identity.Directory
	Guard     *identity.Guard
	Clock     func() time.Time
}

// console is what all pages stand on.
type console struct {
	pages     *ui.Pages
	directory *identity.Directory
	guard     *identity.Guard
	clock     func() time.Time
}

// Mount adds the pages to router.
func Mount(router chi.Router, config Config) {
	pages := ui.NewPages(ui.Errors, templates).Following(config.Directory)
	c := &console{pages, config.Directory, config.Guard, config.Clock}
	pages.Mount(router, config.Guard, func(r chi.Router) {
		(&groupPages{c, config.Service}).mount(r)
		(&alertPages{c, config.Service.Alerts}).mount(r)
		c.rulesPage(config.Service.Rules).Mount(r)
		(&settingPages{c, config.Service.Settings, config.Service.Owners}).mount(r)
		(&mapPages{c, config.Service.SourceMaps}).mount(r)
	})
}

// shows handles a request that changes nothing.
func (c *console) shows(handle func(w http.ResponseWriter, r *http.Request) error) http.HandlerFunc {
	return c.pages.Handle(func(w http.ResponseWriter, r *http.Request) error { return groups.Problem(handle(w, r)) })
}

// changes handles a form of a member who may decide, which it reads.
func (c *console) changes(handle func(w http.ResponseWriter, r *http.Request, request groups.Request) error) http.HandlerFunc {
	return c.shows(func(w http.ResponseWriter, r *http.Request) error {
		who := identity.FromContext(r.Context())
		if !identity.RoleDecides(who.Role()) {
			return httpapi.NewProblem(http.StatusForbidden, httpapi.CodeForbidden,
				"Your role here is "+who.Role()+", which may not resolve, ignore or assign errors. Ask one of the owners, admins or developers.")
		}
		if err := ui.ReadForm(w, r); err != nil {
			return err
		}
		request := c.request(r)
		if r.PostForm.Get("key") != "" {
			request.Key = r.PostForm.Encode()
		}
		return handle(w, r, request)
	})
}

// request is a change by the reader.
func (c *console) request(r *http.Request) groups.Request {
	request := groups.Request{Who: identity.FromContext(r.Context()), By: groups.AuthorOf(r, c.guard)}
	request.By.ID, request.By.Name = request.Who.Member, request.Who.Name
	return request
}

// may reports whether the reader may change what the pages show.
func may(r *http.Request) bool { return mayDecide(identity.FromContext(r.Context())) }

func mayDecide(who identity.Principal) bool { return identity.RoleDecides(who.Role()) }

// unlessRepeated is an error, unless the same form was sent before: its key
// is all of it, and its times may differ.
func unlessRepeated(err error) error {
	if errors.Is(err, idempotency.ErrReused) {
		return nil
	}
	return err
}

// redirect shows another page, and there what was done.
func redirect(w http.ResponseWriter, r *http.Request, flash, to string) error {
	ui.SetFlash(w, flash)
	http.Redirect(w, r, to, http.StatusSeeOther)
	return nil
}

// ofProject is the address of a page about a project.
func ofProject(path, project string) string { return path + "?project=" + url.QueryEscape(project) }

// placed puts a fault at its field.
func placed(fields []ui.Field, invalid grouping.Invalid) (found bool) {
	for i := range fields {
		if fields[i].Name == invalid.Field {
			fields[i].Fault, found = invalid.Error(), true
		}
	}
	return found
}

// members are those of the reader's organization who may read errors.
func (c *console) members(r *http.Request) (members []grouping.Member) {
	for _, m := range c.directory.MembersThatRead(identity.OrganizationOf(r.Context()), identity.ReadErrors) {
		members = append(members, grouping.Member{ID: m.ID, Name: m.Name})
	}
	return members
}

// namesOf are the names of members that say who it is, sorted as these.
func namesOf(members []grouping.Member) (names []string) {
	for i, m := range members {
		if (i == 0 || members[i-1].Name != m.Name) && (i+1 == len(members) || members[i+1].Name != m.Name) {
			names = append(names, m.Name)
		}
	}
	return names
}

// who names an author or an assignee to the reader.
func (c *console) who(r *http.Request, id, name string) string {
	if id != "" && id == identity.FromContext(r.Context()).Member {
		return "you"
	}
	if key, is := c.directory.Key(identity.OrganizationOf(r.Context()), id); is {
		name = "Key \"" + key.Name + "\""
	}
	if i := slices.IndexFunc(c.members(r), func(m grouping.Member) bool { return m.ID == id }); i >= 0 && name == "" {
		name = c.members(r)[i].Name
	}
	return cmp.Or(name, id)
}
