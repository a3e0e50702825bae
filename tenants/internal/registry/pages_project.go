package registry

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/pages"
	"github.com/weirlog/weir/tenants/internal/query"
)

type projectsPage struct {
	pages.Settings
	Projects []tenants.Project
	Pager    ui.Pager
	Room     pages.ShownRoom
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
	after, err := pages.PlaceOf(r)
	if err != nil {
		return err
	}
	caller := pages.CallerOf(r)
	found, err := p.service.Projects(r.Context(), caller, caller.Organization, after, pages.PageSize+1)
	if err != nil {
		return err
	}
	list := httpapi.NewList(r, found, pages.PageSize, func(last tenants.Project) any {
		return query.Position{At: last.CreatedAt, ID: last.ID}
	})
	room, err := p.projectRoom(r)
	if err != nil {
		return err
	}
	p.Write(w, r, status, "projects", ui.View{
		Title: "Projects", Tabs: pages.Tabs(r, pages.ProjectsPath),
		Flash: ui.TakeFlash(w, r, map[string]string{
			"project-created": "The project was created. Give it an API key to send logs with.",
			"project-renamed": "The project has its new name.",
		}),
		Data: projectsPage{shown, list.Items, ui.NewPager(r, list.NextCursor), room, name},
	})
	return nil
}

func (p Pages) createProject(w http.ResponseWriter, r *http.Request) error {
	if err := pages.ReadForm(w, r); err != nil {
		return err
	}
	name, caller := r.PostForm.Get("name"), pages.CallerOf(r)
	_, err := p.service.CreateProject(r.Context(), p.RequestOf(r), caller.Organization, name)
	if pages.IsInvalid(err) {
		return p.writeProjects(w, r, http.StatusUnprocessableEntity, newProjectName(name, err))
	}
	if err != nil {
		return pages.ProblemOf(err, "organization", caller.Organization)
	}
	ui.SetFlash(w, "project-created")
	http.Redirect(w, r, pages.ProjectsPath, http.StatusSeeOther)
	return nil
}

type projectPage struct {
	pages.Settings
	Project tenants.Project
	Name    ui.Field
}

func (p Pages) showProject(w http.ResponseWriter, r *http.Request) error {
	return p.writeProject(w, r, http.StatusOK, "", nil)
}

// writeProject shows the project that the address names; name is what was wanted where fault says why it can't be.
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

// projectOf is the project that the address names.
func (p Pages) projectOf(r *http.Request) (tenants.Project, error) {
	id := chi.URLParam(r, "id")
	project, err := p.service.Project(r.Context(), pages.CallerOf(r), id)
	return project, pages.ProblemOf(err, "project", id)
}

// projectRoom is how many projects there are and may be.
func (p Pages) projectRoom(r *http.Request) (pages.ShownRoom, error) {
	room, err := p.service.ProjectRoom(r.Context(), pages.CallerOf(r))
	return pages.ShowRoom(room), err
}

func (p Pages) renameProject(w http.ResponseWriter, r *http.Request) error {
	if err := pages.ReadForm(w, r); err != nil {
		return err
	}
	project, err := p.projectOf(r)
	if err != nil {
		return err
	}
	name := r.PostForm.Get("name")
	_, err = p.service.RenameProject(r.Context(), p.RequestOf(r), project.ID, name)
	if pages.IsInvalid(err) {
		return p.writeProject(w, r, http.StatusUnprocessableEntity, name, err)
	}
	if err != nil {
		return pages.ProblemOf(err, "project", project.ID)
	}
	ui.SetFlash(w, "project-renamed")
	http.Redirect(w, r, pages.ProjectsPath, http.StatusSeeOther)
	return nil
}
