package console

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
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

func (c *console) showProjects(w http.ResponseWriter, r *http.Request) error {
	return c.writeProjects(w, r, http.StatusOK, newProjectName("", nil))
}

func newProjectName(value string, err error) ui.Field {
	return ui.Field{
		Name: "name", Label: "Name", Value: value, Fault: pages.FaultOf(err, "name"), MaxLength: 200, Required: true, Autocomplete: "off",
		Hint: "One application or service, such as Checkout.",
	}
}

func (c *console) writeProjects(w http.ResponseWriter, r *http.Request, status int, name ui.Field) error {
	shown, err := c.Settings(r)
	if err != nil {
		return err
	}
	after, err := pages.PlaceOf(r)
	if err != nil {
		return err
	}
	caller := pages.CallerOf(r)
	found, err := c.Registrar.Projects(r.Context(), caller, caller.Organization, after, pages.PageSize+1)
	if err != nil {
		return err
	}
	list := httpapi.NewList(r, found, pages.PageSize, func(last tenants.Project) any {
		return query.Position{At: last.CreatedAt, ID: last.ID}
	})
	room, err := c.room(r, tenants.CountProjects)
	if err != nil {
		return err
	}
	c.Write(w, r, status, "projects", ui.View{
		Title: "Projects", Tabs: pages.Tabs(r, pages.ProjectsPath),
		Flash: ui.TakeFlash(w, r, map[string]string{
			"project-created": "The project was created. Give it an API key to send logs with.",
			"project-renamed": "The project has its new name.",
		}),
		Data: projectsPage{shown, list.Items, ui.NewPager(r, list.NextCursor), room, name},
	})
	return nil
}

func (c *console) createProject(w http.ResponseWriter, r *http.Request) error {
	if err := pages.ReadForm(w, r); err != nil {
		return err
	}
	name, caller := r.PostForm.Get("name"), pages.CallerOf(r)
	_, err := c.Registrar.CreateProject(r.Context(), c.requestOf(r), caller.Organization, name)
	if pages.IsInvalid(err) {
		return c.writeProjects(w, r, http.StatusUnprocessableEntity, newProjectName(name, err))
	}
	if err != nil {
		return problemOf(err, "organization", caller.Organization)
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

func (c *console) showProject(w http.ResponseWriter, r *http.Request) error {
	return c.writeProject(w, r, http.StatusOK, "", nil)
}

// writeProject shows the project that the address names; name is what was wanted where fault says why it can't be.
func (c *console) writeProject(w http.ResponseWriter, r *http.Request, status int, name string, fault error) error {
	project, err := c.projectOf(r)
	if err != nil {
		return err
	}
	shown, err := c.Settings(r)
	if err != nil {
		return err
	}
	if fault == nil {
		name = project.Name
	}
	field := newProjectName(name, fault)
	c.Write(w, r, status, "project", ui.View{
		Title: "Rename a project", Tabs: pages.Tabs(r, pages.ProjectsPath), Data: projectPage{shown, project, field},
	})
	return nil
}

// projectOf is the project that the address names.
func (c *console) projectOf(r *http.Request) (tenants.Project, error) {
	id := chi.URLParam(r, "id")
	if !tenants.IsID(id) {
		return tenants.Project{}, httpapi.NotFound("project", id)
	}
	project, err := c.Views.Project(r.Context(), pg.Organization(pages.CallerOf(r).Organization), id)
	return project, problemOf(err, "project", id)
}

func (c *console) renameProject(w http.ResponseWriter, r *http.Request) error {
	if err := pages.ReadForm(w, r); err != nil {
		return err
	}
	project, err := c.projectOf(r)
	if err != nil {
		return err
	}
	name := r.PostForm.Get("name")
	_, err = c.Registrar.RenameProject(r.Context(), c.requestOf(r), project.ID, name)
	if pages.IsInvalid(err) {
		return c.writeProject(w, r, http.StatusUnprocessableEntity, name, err)
	}
	if err != nil {
		return problemOf(err, "project", project.ID)
	}
	ui.SetFlash(w, "project-renamed")
	http.Redirect(w, r, pages.ProjectsPath, http.StatusSeeOther)
	return nil
}
