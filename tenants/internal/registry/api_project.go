package registry

import (
	"net/http"
	"time"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/api"
	"github.com/weirlog/weir/tenants/internal/query"
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

func placeOfProject(p tenants.Project) query.Position {
	return query.Position{At: p.CreatedAt, ID: p.ID}
}

func (a API) createProject(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Organization string `json:"organization"`
		Name         string `json:"name"`
	}
	request, err := a.RequestWith(w, r, &body)
	if err != nil {
		return err
	}
	project, err := a.Projects.Create(r.Context(), request, body.Organization, body.Name)
	if err != nil {
		return api.ProblemOf(err, "organization", body.Organization)
	}
	httpapi.WriteJSON(w, http.StatusCreated, showProject(project))
	return nil
}
