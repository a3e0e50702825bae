package registry

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/pages"
	"github.com/weirlog/weir/tenants/internal/query"
)

// deletionPages delete and restore the organization and its projects.
type deletionPages struct {
	pages.Set
	organizations *Service
	projects      *Projects
	deletions     *Deletions
}

func (p deletionPages) mount(settings chi.Router) {
	const manage = tenants.DeletionsManage
	settings.Get(pages.ProjectsPath+"/{id}/delete", p.Confirmed(manage, p.showProject))
	settings.Post(pages.ProjectsPath+"/{id}/delete", p.Confirmed(manage, p.deleteProject))
	settings.Post(pages.ProjectsPath+"/{id}/restore", p.Confirmed(manage, p.restore))
	settings.Get(pages.OrganizationPath+"/delete", p.Confirmed(manage, p.showOrganization))
	settings.Post(pages.OrganizationPath+"/delete", p.Confirmed(manage, p.deleteOrganization))
	settings.Get(pages.DeletionsPath, p.For(manage, p.showAll))
}

// A deletePage confirms a deletion: the reader types its name.
type deletePage struct {
	pages.Settings
	Kind   string // "project"
	Called string
	ID     string
	Action string // address of the form
	Back   string
	Grace  string // how long it can be cancelled; empty: it can't be
	Name   ui.Field
}

func (p deletionPages) showProject(w http.ResponseWriter, r *http.Request) error {
	project, err := projectOf(r, p.projects)
	if err != nil {
		return err
	}
	return p.write(w, r, http.StatusOK, deletionOf(project), "", "")
}

func deletionOf(project tenants.Project) deletePage {
	path := pages.ProjectsPath + "/" + project.ID
	return deletePage{Kind: "project", Called: project.Name, ID: project.ID, Action: path + "/delete", Back: pages.ProjectsPath}
}

func (p deletionPages) showOrganization(w http.ResponseWriter, r *http.Request) error {
	page, err := p.ofOrganization(r)
	if err != nil {
		return err
	}
	return p.write(w, r, http.StatusOK, page, "", "")
}

func (p deletionPages) ofOrganization(r *http.Request) (deletePage, error) {
	caller := pages.CallerOf(r)
	organization, err := p.organizations.Organization(r.Context(), caller, caller.Organization)
	return deletePage{
		Kind: "organization", Called: organization.Name, ID: organization.ID, Action: pages.OrganizationPath + "/delete", Back: pages.OrganizationPath,
	}, pages.ProblemOf(err, "organization", caller.Organization)
}

func (p deletionPages) write(w http.ResponseWriter, r *http.Request, status int, page deletePage, typed, fault string) (err error) {
	if page.Settings, err = p.Settings(r); err != nil {
		return err
	}
	if p.deletions.grace > 0 {
		page.Grace = p.deletions.grace.String()
	}
	page.Name = ui.Field{
		Name: "name", Label: "Name of the " + page.Kind, Value: typed, Fault: fault, Required: true, MaxLength: 200, Autocomplete: "off",
		Hint: "Type " + page.Called + " to confirm.",
	}
	p.Write(w, r, status, "delete", ui.View{Title: "Delete the " + page.Kind, Tabs: pages.Tabs(r, page.Back), Data: page})
	return nil
}

// confirmed reports whether the name was
// typed; else it has shown the form again.
func (p deletionPages) confirmed(w http.ResponseWriter, r *http.Request, page deletePage) (bool, error) {
	typed := r.PostForm.Get("name")
	if tenants.CleanName(typed) == page.Called {
		return true, nil
	}
	return false, p.write(w, r, http.StatusUnprocessableEntity, page, typed, "This is not the name of the "+page.Kind+". Type "+page.Called+".")
}

func (p deletionPages) deleteProject(w http.ResponseWriter, r *http.Request) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	project, err := projectOf(r, p.projects)
	if err != nil {
		return err
	}
	if ok, err := p.confirmed(w, r, deletionOf(project)); err != nil || !ok {
		return err
	}
	if _, err := p.deletions.DeleteProject(r.Context(), p.RequestOf(r), project.ID); err != nil {
		return pages.ProblemOf(err, "project", project.ID)
	}
	ui.SetFlash(w, "project-deleted")
	http.Redirect(w, r, pages.DeletionsPath, http.StatusSeeOther)
	return nil
}

// deleteOrganization ends the caller's session,
// with all others of the organization.
func (p deletionPages) deleteOrganization(w http.ResponseWriter, r *http.Request) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	page, err := p.ofOrganization(r)
	if err != nil {
		return err
	}
	if ok, err := p.confirmed(w, r, page); err != nil || !ok {
		return err
	}
	if _, err := p.deletions.DeleteOrganization(r.Context(), p.RequestOf(r), page.ID); err != nil {
		return pages.ProblemOf(err, "organization", page.ID)
	}
	http.SetCookie(w, pages.SessionCookie("", -1))
	http.Redirect(w, r, identity.SignInPath, http.StatusSeeOther)
	return nil
}

// A shownDeletion is a deletion as text.
type shownDeletion struct {
	ListedDeletion
	Word       string
	Tone       string // of its badge
	Modules    []removedBy
	Restorable bool
}

type removedBy struct{ Module, Rows string }

type deletionsPage struct {
	pages.Settings
	Deletions []shownDeletion
	Pager     ui.Pager
}

func (p deletionPages) showAll(w http.ResponseWriter, r *http.Request) error {
	shown, err := p.Settings(r)
	if err != nil {
		return err
	}
	caller := pages.CallerOf(r)
	find := func(after query.Position, limit int) ([]ListedDeletion, error) {
		return p.deletions.List(r.Context(), caller, caller.Organization, after, limit)
	}
	list, pager, err := pages.ListOf(r, find, placeOfDeletion)
	if err != nil {
		return pages.ProblemOf(err, "organization", caller.Organization)
	}
	page := deletionsPage{Settings: shown, Pager: pager}
	for _, deletion := range list {
		page.Deletions = append(page.Deletions, deletionText(deletion))
	}
	p.Write(w, r, http.StatusOK, "deletions", ui.View{
		Title: "Deletions", Tabs: pages.Tabs(r, pages.DeletionsPath),
		Flash: ui.TakeFlash(w, r, map[string]string{
			"project-deleted":  "The project is deleted: nobody sees it, and its keys are refused.",
			"project-restored": "The project is back, and so are its keys.",
		}),
		Data: page,
	})
	return nil
}

func deletionText(d ListedDeletion) shownDeletion {
	shown := shownDeletion{ListedDeletion: d, Word: string(d.State), Tone: "warn", Restorable: d.State == tenants.Deleting}
	switch d.State {
	case tenants.Gone:
		shown.Tone = ""
	case tenants.DeletionCancelledState:
		shown.Tone = "accent"
	}
	for _, module := range slices.Sorted(maps.Keys(d.Removed)) {
		var tables []string
		for _, table := range slices.Sorted(maps.Keys(d.Removed[module])) {
			tables = append(tables, fmt.Sprintf("%s %d", table, d.Removed[module][table]))
		}
		shown.Modules = append(shown.Modules, removedBy{module, strings.Join(tables, ", ")})
	}
	return shown
}

func (p deletionPages) restore(w http.ResponseWriter, r *http.Request) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	id := chi.URLParam(r, "id")
	if _, err := p.deletions.Restore(r.Context(), p.RequestOf(r), id); err != nil {
		return pages.ProblemOf(err, "project", id)
	}
	ui.SetFlash(w, "project-restored")
	http.Redirect(w, r, pages.DeletionsPath, http.StatusSeeOther)
	return nil
}
