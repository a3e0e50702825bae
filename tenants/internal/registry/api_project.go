package registry

import (
	"net/http"
	"time"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/api"
	"github.com/weirlog/weir/tenants/internal/query"
)

func projectOperations(a API) []openapi.Operation {
	return []openapi.Operation{
		{
			Route: "POST /v1/projects", Handle: a.createProject, ID: "createProject",
			Summary: "Create a project of an organization",
			Headers: api.Creation{},
			Body:    openapi.Body{Type: newProjectBody{}},
			Answer:  openapi.Answer{Status: http.StatusCreated, Type: projectJSON{}},
			Problems: map[int]string{
				http.StatusNotFound: api.Unknown,
				http.StatusConflict: api.LimitReached,
			},
		},
		{
			Route: "GET /v1/projects", ID: "listProjects",
			Handle:   api.ListHandler("organization", api.OneOrganizationOf, a.Projects.List, showProject, placeOfProject),
			Summary:  "The projects of an organization",
			Query:    api.OrganizationQuery{},
			Answer:   openapi.Answer{Type: httpapi.List[projectJSON]{}, Description: "A page, from old to new"},
			Problems: map[int]string{http.StatusNotFound: api.Unknown},
		},
		{
			Route: "PATCH /v1/projects/{id}", ID: "renameProject",
			Handle:  api.ChangeHandler(a.Kit, "project", api.NameOf, a.Projects.Rename, showProject),
			Summary: "Rename a project",
			Body:    openapi.Body{Type: api.NameBody{}},
			Answer:  openapi.Answer{Type: projectJSON{}},
		},
	}
}

type projectJSON struct {
	ID           string    `json:"id" pattern:"^[A-Za-z0-9_-]+$" minLength:"1" maxLength:"64"`
	Organization string    `json:"organization" pattern:"^[A-Za-z0-9_-]+$" minLength:"1" maxLength:"64"`
	Name         string    `json:"name" minLength:"1" maxLength:"200" description:"Without control characters; white space around it is dropped"`
	CreatedAt    time.Time `json:"created_at"`
}

func showProject(p tenants.Project) projectJSON {
	return projectJSON{ID: p.ID, Organization: p.Organization, Name: p.Name, CreatedAt: p.CreatedAt.UTC()}
}

func placeOfProject(p tenants.Project) query.Position {
	return query.Position{At: p.CreatedAt, ID: p.ID}
}

type newProjectBody struct {
	Organization string `json:"organization" required:"true" pattern:"^[A-Za-z0-9_-]+$" minLength:"1" maxLength:"64"`
	Name         string `json:"name" required:"true" minLength:"1" maxLength:"200" description:"Without control characters; white space around it is dropped"`
}

func (a API) createProject(w http.ResponseWriter, r *http.Request) error {
	var body newProjectBody
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
