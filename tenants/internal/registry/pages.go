package registry

import (
	"embed"
	"fmt"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/pages"
	"github.com/weirlog/weir/tenants/internal/query"
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
	organizationPages{p.Set, p.Organizations}.mount(settings)
	projectPages{p.Set, p.Projects}.mount(settings)
	deletionPages{p.Set, p.Organizations, p.Projects, p.Deletions}.mount(settings)
	tokenPages{p.Set, p.Tokens}.mount(settings)
	securityPages{p.Set, p.Policies}.mount(settings)
}

// organizationPages show and rename the organization.
type organizationPages struct {
	pages.Set
	organizations *Service
}

func (p organizationPages) mount(settings chi.Router) {
	settings.Get(pages.OrganizationPath, p.For(tenants.OrganizationRead, p.show))
	settings.Post(pages.OrganizationPath, p.For(tenants.OrganizationWrite, p.rename()))
}

type organizationPage struct {
	pages.Settings
	MayRename bool
	Name      ui.Field
}

func (p organizationPages) show(w http.ResponseWriter, r *http.Request) error {
	return p.write(w, r, http.StatusOK, "", nil)
}

// write shows the organization; name is
// the wanted one if fault is why it was refused.
func (p organizationPages) write(w http.ResponseWriter, r *http.Request, status int, name string, fault error) error {
	shown, err := p.Settings(r)
	if err != nil {
		return err
	}
	shown.Organization = p.organizations.subscribed(shown.Organization)
	if fault == nil {
		name = shown.Organization.Name
	}
	p.Write(w, r, status, "organization", ui.View{
		Title: "Organization", Tabs: pages.Tabs(r, pages.OrganizationPath),
		Flash: ui.TakeFlash(w, r, map[string]string{"organization-renamed": "The organization has its new name."}),
		Data: organizationPage{shown, shown.Role.May(tenants.OrganizationWrite), ui.Field{
			Name: "name", Label: "Name", Value: name, Fault: pages.FaultOf(fault, "name"), MaxLength: 200, Required: true, Autocomplete: "organization",
		}},
	})
	return nil
}

func (p organizationPages) rename() pages.Handler {
	return pages.TextForm[tenants.Organization]{
		What: "organization", Field: "name", ID: ownOrganization, Change: p.organizations.Rename, Again: p.write,
		Flash: "organization-renamed", Back: pages.OrganizationPath,
	}.Submit(p.Kit)
}

func ownOrganization(r *http.Request) (string, error) { return pages.CallerOf(r).Organization, nil }

// projectPages show, create and rename projects.
type projectPages struct {
	pages.Set
	projects *Projects
}

func (p projectPages) mount(settings chi.Router) {
	settings.Get(pages.ProjectsPath, p.For(tenants.ProjectsRead, p.showAll))
	settings.Post(pages.ProjectsPath, p.For(tenants.ProjectsWrite, p.create))
	settings.Get(pages.ProjectsPath+"/{id}", p.For(tenants.ProjectsWrite, p.show))
	settings.Post(pages.ProjectsPath+"/{id}", p.For(tenants.ProjectsWrite, p.rename()))
}

type projectsPage struct {
	pages.Settings
	Projects []tenants.Project
	Pager    ui.Pager
	Capacity pages.ShownCapacity
	Name     ui.Field
}

func (p projectPages) showAll(w http.ResponseWriter, r *http.Request) error {
	return p.writeAll(w, r, http.StatusOK, newProjectName("", nil))
}

func newProjectName(value string, err error) ui.Field {
	return ui.Field{
		Name: "name", Label: "Name", Value: value, Fault: pages.FaultOf(err, "name"), MaxLength: 200, Required: true, Autocomplete: "off",
		Hint: "One application or service, such as Checkout.",
	}
}

func (p projectPages) writeAll(w http.ResponseWriter, r *http.Request, status int, name ui.Field) error {
	shown, err := p.Settings(r)
	if err != nil {
		return err
	}
	caller := pages.CallerOf(r)
	find := func(after query.Position, limit int) ([]tenants.Project, error) {
		return p.projects.List(r.Context(), caller, caller.Organization, after, limit)
	}
	list, pager, err := pages.ListOf(r, find, placeOfProject)
	if err != nil {
		return err
	}
	capacity, err := pages.CapacityOf(r, p.projects.Capacity)
	if err != nil {
		return err
	}
	p.Write(w, r, status, "projects", ui.View{
		Title: "Projects", Tabs: pages.Tabs(r, pages.ProjectsPath),
		Flash: ui.TakeFlash(w, r, map[string]string{
			"project-created": "The project was created. Give it an API key to send logs with.",
			"project-renamed": "The project has its new name.",
		}),
		Data: projectsPage{shown, list, pager, capacity, name},
	})
	return nil
}

func (p projectPages) create(w http.ResponseWriter, r *http.Request) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	name, caller := r.PostForm.Get("name"), pages.CallerOf(r)
	_, err := p.projects.Create(r.Context(), p.RequestOf(r), caller.Organization, name)
	if pages.IsInvalid(err) {
		return p.writeAll(w, r, http.StatusUnprocessableEntity, newProjectName(name, err))
	}
	if err != nil {
		return pages.ProblemOf(err, "organization", caller.Organization)
	}
	return pages.Done(w, r, "project-created", pages.ProjectsPath)
}

type projectPage struct {
	pages.Settings
	Project tenants.Project
	Name    ui.Field
}

func (p projectPages) show(w http.ResponseWriter, r *http.Request) error {
	return p.write(w, r, http.StatusOK, "", nil)
}

// write shows the project in the address; name
// is the wanted one if fault is why it was refused.
func (p projectPages) write(w http.ResponseWriter, r *http.Request, status int, name string, fault error) error {
	project, err := projectOf(r, p.projects)
	if err != nil {
		return err
	}
	shown, err := p.Settings(r)
	if err != nil {
		return err
	}
	if fault == nil {
		name = project.Name
	}
	field := newProjectName(name, fault)
	p.Write(w, r, status, "project", ui.View{
		Title: "Rename a project", Tabs: pages.Tabs(r, pages.ProjectsPath), Data: projectPage{shown, project, field},
	})
	return nil
}

// projectOf is the project in the address.
func projectOf(r *http.Request, projects *Projects) (tenants.Project, error) {
	id := chi.URLParam(r, "id")
	project, err := projects.Project(r.Context(), pages.CallerOf(r), id)
	return project, pages.ProblemOf(err, "project", id)
}

// id is the id of the project in the address.
func (p projectPages) id(r *http.Request) (string, error) {
	project, err := projectOf(r, p.projects)
	return project.ID, err
}

func (p projectPages) rename() pages.Handler {
	return pages.TextForm[tenants.Project]{
		What: "project", Field: "name", ID: p.id, Change: p.projects.Rename, Again: p.write,
		Flash: "project-renamed", Back: pages.ProjectsPath,
	}.Submit(p.Kit)
}

// securityPages show and set the security policy.
type securityPages struct {
	pages.Set
	policies *Policies
}

func (p securityPages) mount(settings chi.Router) {
	settings.Get(pages.SecurityPath, p.Confirmed(tenants.SecurityWrite, p.show))
	settings.Post(pages.SecurityPath, p.Confirmed(tenants.SecurityWrite, p.set))
}

type securityPage struct {
	pages.Settings
	LeakedKeys    ui.Field
	PlainHTTPKeys ui.Field
	Passwords     ui.Field
	Beside        string // members who can sign in without a password
}

func (p securityPages) show(w http.ResponseWriter, r *http.Request) error {
	caller := pages.CallerOf(r)
	policy, err := p.policies.Policy(r.Context(), caller, caller.Organization)
	if err != nil {
		return err
	}
	wanted := NewPolicy{LeakedKeys: policy.LeakedKeys, PlainHTTPKeys: policy.PlainHTTPKeys, PasswordsOff: &policy.PasswordsOff}
	return p.write(w, r, http.StatusOK, wanted, nil)
}

func (p securityPages) write(w http.ResponseWriter, r *http.Request, status int, wanted NewPolicy, fault error) error {
	shown, err := p.Settings(r)
	if err != nil {
		return err
	}
	beside, err := p.beside(r)
	if err != nil {
		return err
	}
	p.Write(w, r, status, "security", ui.View{
		Title: "Security", Tabs: pages.Tabs(r, pages.SecurityPath),
		Flash: ui.TakeFlash(w, r, map[string]string{"policy-set": "The security policy is in force."}),
		Data: securityPage{shown,
			ui.Field{Name: "leaked_keys", Label: "A key that was found in public", Fault: pages.FaultOf(fault, "leaked_keys"),
				Hint: "A service that looks for secrets in public repositories has reported it. Whatever you choose, the key is flagged here.",
				Choices: ui.NewChoices(string(wanted.LeakedKeys),
					[2]string{string(tenants.NotifyLeaked), "Flag it, and leave it in force"},
					[2]string{string(tenants.RotateLeaked), "Let it end in a while, so that it must be rotated"},
					[2]string{string(tenants.RevokeLeaked), "Revoke it at once"})},
			ui.Field{Name: "plain_http_keys", Label: "A key that was sent over plain HTTP", Fault: pages.FaultOf(fault, "plain_http_keys"),
				Hint: "Anyone who is on the way can read it there. The request itself is always refused, and the key flagged here.",
				Choices: ui.NewChoices(string(wanted.PlainHTTPKeys),
					[2]string{string(tenants.FlagPlainHTTP), "Flag it, and leave it in force"},
					[2]string{string(tenants.RevokePlainHTTP), "Revoke it at once"})},
			passwordsField(wanted.PasswordsOff != nil && *wanted.PasswordsOff, fault), beside,
		},
	})
	return nil
}

// passwordsField is the field by which owners switch passwords off.
func passwordsField(off bool, fault error) ui.Field {
	return ui.Field{
		Name: "passwords", Label: "Signing in with a password", Fault: pages.FaultOf(fault, "passwords"),
		Hint: "Where it is off, nobody signs in, joins or confirms with a password. Who is signed in stays so. " +
			"A link to reset a password lets its holder in once, to add a passkey.",
		Choices: ui.NewChoices(tenants.SecurityPolicy{PasswordsOff: off}.PasswordPolicy(),
			[2]string{tenants.PasswordsAllowed, "Allowed, beside passkeys and the identity provider"},
			[2]string{tenants.PasswordsOff, "Off: passkeys or the identity provider alone"}),
	}
}

// beside is how many members can sign in without a password.
func (p securityPages) beside(r *http.Request) (string, error) {
	able, all, err := p.policies.members.MembersWithoutPassword(r.Context(), pg.Organization(pages.CallerOf(r).Organization))
	return fmt.Sprintf("%d of %d members have a passkey, or are known to the identity provider.", able, all), err
}

func (p securityPages) set(w http.ResponseWriter, r *http.Request) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	organization := pages.CallerOf(r).Organization
	wanted := NewPolicy{
		LeakedKeys:    tenants.LeakedPolicy(r.PostForm.Get("leaked_keys")),
		PlainHTTPKeys: tenants.PlainHTTPPolicy(r.PostForm.Get("plain_http_keys")),
	}
	off, known := tenants.ParsePasswordsOff(r.PostForm.Get("passwords"))
	if wanted.PasswordsOff = off; !known {
		return httpapi.NewProblem(http.StatusBadRequest, httpapi.CodeInvalidRequest, "The form could not be read. Go back, reload the page and send it again.")
	}
	_, err := p.policies.Set(r.Context(), p.RequestOf(r), organization, wanted)
	if pages.IsInvalid(err) {
		return p.write(w, r, http.StatusUnprocessableEntity, wanted, err)
	}
	if err != nil {
		return pages.ProblemOf(err, "organization", organization)
	}
	return pages.Done(w, r, "policy-set", pages.SecurityPath)
}
