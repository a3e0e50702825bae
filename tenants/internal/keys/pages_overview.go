package keys

import (
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/pages"
	"github.com/weirlog/weir/tenants/internal/query"
)

// overviewPath is the first page of a project. The gateway fills in the parts of
// other modules, as it finds their places.
const overviewPath = "/console/overview"

// overviewPages are the overviews of projects: what their keys need, and places
// for what other modules show.
type overviewPages struct {
	pages.Set
	service *Service
}

func (p overviewPages) mount(console chi.Router) {
	console.Get(overviewPath, p.For(tenants.ProjectsRead, p.show))
}

// idleAfter is when a key that is not used is mentioned.
const idleAfter = 30 * 24 * time.Hour

// maxMentioned is how many keys an overview mentions.
const maxMentioned = 5

type overviewPage struct {
	Project  tenants.Project
	Projects []ui.Choice // to switch to; nil: there is no other
	First    *ui.Empty   // what to do first; nil: entries have come
	Active   int         // keys in force
	Keys     []mentionedKey
	More     int // keys to mention beyond these
	Role     tenants.Role
}

// A mentionedKey is a key that somebody should look at.
type mentionedKey struct {
	shownKey
	Idle bool // it is not used, else it ends soon
}

func (p overviewPages) show(w http.ResponseWriter, r *http.Request) error {
	caller, id := pages.CallerOf(r), r.URL.Query().Get("project")
	projects, err := p.service.projects.List(r.Context(), caller, caller.Organization, query.Position{}, pages.MaxChoices)
	if err != nil {
		return err
	}
	if id == "" {
		return p.choose(w, r, projects)
	}
	project, err := p.service.projects.Project(r.Context(), caller, id)
	if err != nil {
		return pages.ProblemOf(err, "project", id)
	}
	page := overviewPage{Project: project, Role: pages.RoleOf(r)}
	if len(projects) > 1 {
		page.Projects = choicesOf(projects, id)
	}
	if err := p.addKeys(r, &page); err != nil {
		return err
	}
	p.Write(w, r, http.StatusOK, "overview", ui.View{Title: project.Name, Of: project.Name, Data: page})
	return nil
}

// choose leads to the only project, or shows all of them.
func (p overviewPages) choose(w http.ResponseWriter, r *http.Request, projects []tenants.Project) error {
	if len(projects) == 1 {
		http.Redirect(w, r, overviewOf(projects[0].ID), http.StatusSeeOther)
		return nil
	}
	page := struct {
		Projects []ui.Link
		May      bool
	}{May: pages.RoleOf(r).May(tenants.ProjectsWrite)}
	for _, project := range projects {
		page.Projects = append(page.Projects, ui.Link{Text: project.Name, Href: overviewOf(project.ID)})
	}
	p.Write(w, r, http.StatusOK, "overview-choose", ui.View{Title: "Projects", Data: page})
	return nil
}

func overviewOf(project string) string { return overviewPath + "?project=" + url.QueryEscape(project) }

func choicesOf(projects []tenants.Project, chosen string) []ui.Choice {
	var pairs [][2]string
	for _, project := range projects {
		pairs = append(pairs, [2]string{project.ID, project.Name})
	}
	return ui.NewChoices(chosen, pairs...)
}

// addKeys adds what is to be done about the project's keys.
func (p overviewPages) addKeys(r *http.Request, page *overviewPage) error {
	now, organization := p.Clock(), pg.Organization(page.Project.Organization)
	active, err := p.service.store.Active(r.Context(), organization, page.Project.ID, now)
	if err != nil {
		return err
	}
	began, err := p.service.store.Began(r.Context(), organization, page.Project.ID)
	if err != nil {
		return err
	}
	page.Active = len(active)
	if !began && now.Sub(page.Project.CreatedAt) < tenants.EndedKept { // later, the keys that were used may be forgotten
		first := firstStep(page.Project, page.Role, active)
		page.First = &first
		return nil
	}
	for _, key := range active {
		shown := mentionedKey{showKey(key, now), now.Sub(later(key.LastUsedAt, key.IssuedAt)) > idleAfter}
		switch {
		case !shown.Soon && !shown.Idle:
		case len(page.Keys) == maxMentioned:
			page.More++
		default:
			page.Keys = append(page.Keys, shown)
		}
	}
	return nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// firstStep is what to do in a project that nothing was sent to.
func firstStep(project tenants.Project, role tenants.Role, active []Listed) ui.Empty {
	switch {
	case len(active) > 0:
		key := active[len(active)-1]
		return ui.Empty{Title: "No entry has come yet",
			Text:   fmt.Sprintf("The API key %q waits for its first entry. Send it from your service or with curl.", key.Name),
			Action: &ui.Link{Text: "Open the key", Href: pages.APIKeysPath + "/" + key.ID}}
	case role.May(tenants.APIKeysWrite):
		return ui.Empty{Title: "Send the first entry", Text: "Create an API key for this project: the next page shows what to send with it.",
			Action: &ui.Link{Text: "Create an API key", Href: pages.APIKeysPath + "/new?project=" + url.QueryEscape(project.ID)}}
	}
	return ui.Empty{Title: "No entry has come yet", Text: "The project has no API key. Ask one of the owners, admins or developers to create one."}
}
