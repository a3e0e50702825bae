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

type organizationPage struct {
	pages.Settings
	MayRename bool
	Name      ui.Field
}

func (p Pages) showOrganization(w http.ResponseWriter, r *http.Request) error {
	return p.writeOrganization(w, r, http.StatusOK, "", nil)
}

// writeOrganization shows the organization; name is
// the wanted one if fault is why it was refused.
func (p Pages) writeOrganization(w http.ResponseWriter, r *http.Request, status int, name string, fault error) error {
	shown, err := p.Settings(r)
	if err != nil {
		return err
	}
	shown.Organization = p.Organizations.subscribed(shown.Organization)
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

func (p Pages) renameOrganization() pages.Handler {
	return pages.TextForm[tenants.Organization]{
		What: "organization", Field: "name", ID: ownOrganization, Change: p.Organizations.Rename, Again: p.writeOrganization,
		Flash: "organization-renamed", Back: pages.OrganizationPath,
	}.Submit(p.Kit)
}

func ownOrganization(r *http.Request) (string, error) { return pages.CallerOf(r).Organization, nil }

type projectsPage struct {
	pages.Settings
	Projects []tenants.Project
	Pager    ui.Pager
	Capacity pages.ShownCapacity
	Name     ui.Field
}

func (p Pages) showProjects(w http.ResponseWriter, r *http.Request) error {
	return p.writeProjects(w, r, http.StatusOK, newProjectName("", nil))
}

func newProjectName(value string, err error) ui.Field {
	return ui.Field{
		Name: "name", Label: "Name", Value: value, Fault: pages.FaultOf(err, "name"), MaxLength: 200, Required: true, Autocomplete: "off",
		Hint: "One application or service, such as Checkout.",
	}
}

func (p Pages) writeProjects(w http.ResponseWriter, r *http.Request, status int, name ui.Field) error {
	shown, err := p.Settings(r)
	if err != nil {
		return err
	}
	caller := pages.CallerOf(r)
	find := func(after query.Position, limit int) ([]tenants.Project, error) {
		return p.Projects.List(r.Context(), caller, caller.Organization, after, limit)
	}
	list, pager, err := pages.ListOf(r, find, placeOfProject)
	if err != nil {
		return err
	}
	capacity, err := pages.CapacityOf(r, p.Projects.Capacity)
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

func (p Pages) createProject(w http.ResponseWriter, r *http.Request) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	name, caller := r.PostForm.Get("name"), pages.CallerOf(r)
	_, err := p.Projects.Create(r.Context(), p.RequestOf(r), caller.Organization, name)
	if pages.IsInvalid(err) {
		return p.writeProjects(w, r, http.StatusUnprocessableEntity, newProjectName(name, err))
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

func (p Pages) showProject(w http.ResponseWriter, r *http.Request) error {
	return p.writeProject(w, r, http.StatusOK, "", nil)
}

// writeProject shows the project in the address; name
// is the wanted one if fault is why it was refused.
func (p Pages) writeProject(w http.ResponseWriter, r *http.Request, status int, name string, fault error) error {
	project, err := p.projectOf(r)
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
func (p Pages) projectOf(r *http.Request) (tenants.Project, error) {
	id := chi.URLParam(r, "id")
	project, err := p.Projects.Project(r.Context(), pages.CallerOf(r), id)
	return project, pages.ProblemOf(err, "project", id)
}

// projectID is the id of the project in the address.
func (p Pages) projectID(r *http.Request) (string, error) {
	project, err := p.projectOf(r)
	return project.ID, err
}

func (p Pages) renameProject() pages.Handler {
	return pages.TextForm[tenants.Project]{
		What: "project", Field: "name", ID: p.projectID, Change: p.Projects.Rename, Again: p.writeProject,
		Flash: "project-renamed", Back: pages.ProjectsPath,
	}.Submit(p.Kit)
}

type securityPage struct {
	pages.Settings
	LeakedKeys    ui.Field
	PlainHTTPKeys ui.Field
	Passwords     ui.Field
	Beside        string // members who can sign in without a password
}

func (p Pages) showSecurity(w http.ResponseWriter, r *http.Request) error {
	caller := pages.CallerOf(r)
	policy, err := p.Policies.Policy(r.Context(), caller, caller.Organization)
	if err != nil {
		return err
	}
	wanted := NewPolicy{LeakedKeys: policy.LeakedKeys, PlainHTTPKeys: policy.PlainHTTPKeys, PasswordsOff: &policy.PasswordsOff}
	return p.writeSecurity(w, r, http.StatusOK, wanted, nil)
}

func (p Pages) writeSecurity(w http.ResponseWriter, r *http.Request, status int, wanted NewPolicy, fault error) error {
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
func (p Pages) beside(r *http.Request) (string, error) {
	able, all, err := p.Policies.members.MembersWithoutPassword(r.Context(), pg.Organization(pages.CallerOf(r).Organization))
	return fmt.Sprintf("%d of %d members have a passkey, or are known to the identity provider.", able, all), err
}

func (p Pages) setSecurity(w http.ResponseWriter, r *http.Request) error {
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
	_, err := p.Policies.Set(r.Context(), p.RequestOf(r), organization, wanted)
	if pages.IsInvalid(err) {
		return p.writeSecurity(w, r, http.StatusUnprocessableEntity, wanted, err)
	}
	if err != nil {
		return pages.ProblemOf(err, "organization", organization)
	}
	return pages.Done(w, r, "policy-set", pages.SecurityPath)
}
