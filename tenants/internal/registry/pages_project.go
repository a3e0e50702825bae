package registry

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/pages"
	"github.com/weirlog/weir/tenants/internal/query"
)

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
