package http

import (
	"cmp"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/postgres"
)

type projectJSON struct {
	ID           string    `json:"id"`
	Organization string    `json:"organization"`
	Name         string    `json:"name"`
	CreatedAt    time.Time `json:"created_at"`
}

func showProject(p tenants.Project) projectJSON {
	return projectJSON{ID: p.ID, Organization: p.Organization, Name: p.Name, CreatedAt: p.CreatedAt.UTC()}
}

func (a *API) createProject(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Organization string `json:"organization"`
		Name         string `json:"name"`
	}
	request, err := a.requestOf(r)
	if err != nil {
		return err
	}
	if err := httpapi.ReadJSON(w, r, &body); err != nil {
		return err
	}
	project, err := a.registrar.CreateProject(r.Context(), request, body.Organization, body.Name)
	if err != nil {
		return problemOf(err, "organization", body.Organization)
	}
	httpapi.WriteJSON(w, http.StatusCreated, showProject(project))
	return nil
}

func (a *API) listProjects(w http.ResponseWriter, r *http.Request) error {
	organization := organizationOf(r)
	if organization == tenants.Installation {
		return missing("organization")
	}
	after, limit, err := pageOf(r, "organization")
	if err != nil {
		return err
	}
	found, err := a.registrar.Projects(r.Context(), callerOf(r), organization, after, limit+1)
	if err != nil {
		return problemOf(err, "organization", organization)
	}
	listOf(w, found, limit, showProject, func(p tenants.Project) postgres.Position {
		return postgres.Position{At: p.CreatedAt, ID: p.ID}
	})
	return nil
}

// organizationOf is the organization that a list is about: the one in the query, else what the caller is bound to.
func organizationOf(r *http.Request) string {
	return cmp.Or(r.URL.Query().Get("organization"), callerOf(r).Organization)
}

func (a *API) renameProject(w http.ResponseWriter, r *http.Request) error {
	request, name, err := a.renaming(w, r)
	if err != nil {
		return err
	}
	id := chi.URLParam(r, "id")
	project, err := a.registrar.RenameProject(r.Context(), request, id, name)
	if err != nil {
		return problemOf(err, "project", id)
	}
	httpapi.WriteJSON(w, http.StatusOK, showProject(project))
	return nil
}
