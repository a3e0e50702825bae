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

func organizationOperations(a API) []openapi.Operation {
	return []openapi.Operation{
		{
			Route: "POST /v1/organizations", Handle: a.createOrganization, ID: "createOrganization",
			Summary: "Create an organization (operators only)",
			Headers: api.Creation{},
			Body:    openapi.Body{Type: newOrganizationBody{}},
			Answer:  openapi.Answer{Status: http.StatusCreated, Type: organizationJSON{}},
		},
		{
			Route: "GET /v1/organizations", Handle: a.listOrganizations, ID: "listOrganizations",
			Summary: "The organizations that the token may know of",
			Query:   httpapi.Page{},
			Answer:  openapi.Answer{Type: httpapi.List[organizationJSON]{}, Description: "A page, from old to new"},
		},
		{
			Route: "GET /v1/organizations/{id}", ID: "getOrganization",
			Handle:  api.ShowHandler("organization", a.Organizations.Organization, showOrganization),
			Summary: "Show an organization",
			Answer:  openapi.Answer{Type: organizationJSON{}},
		},
		{
			Route: "PATCH /v1/organizations/{id}", ID: "renameOrganization",
			Handle:  api.ChangeHandler(a.Kit, "organization", api.NameOf, a.Organizations.Rename, showOrganization),
			Summary: "Rename an organization",
			Body:    openapi.Body{Type: api.NameBody{}},
			Answer:  openapi.Answer{Type: organizationJSON{}},
		},
	}
}

type organizationJSON struct {
	ID        string    `json:"id" pattern:"^[A-Za-z0-9_-]+$" minLength:"1" maxLength:"64"`
	Name      string    `json:"name" minLength:"1" maxLength:"200" description:"Without control characters; white space around it is dropped"`
	Tier      string    `json:"tier" enum:"indie,bootstrapper,compliance,scale" description:"In force now; PUT /organizations/{organization}/subscription changes it"`
	CreatedAt time.Time `json:"created_at"`
}

func showOrganization(o tenants.Organization) organizationJSON {
	return organizationJSON{ID: o.ID, Name: o.Name, Tier: string(o.Tier), CreatedAt: o.CreatedAt.UTC()}
}

type newOrganizationBody struct {
	Name string       `json:"name" required:"true" minLength:"1" maxLength:"200" description:"Without control characters; white space around it is dropped"`
	Tier tenants.Tier `json:"tier" required:"true" enum:"indie,bootstrapper,compliance,scale"`
}

func (a API) createOrganization(w http.ResponseWriter, r *http.Request) error {
	var body newOrganizationBody
	request, err := a.RequestWith(w, r, &body)
	if err != nil {
		return err
	}
	organization, err := a.Organizations.Create(r.Context(), request, body.Name, body.Tier)
	if err != nil {
		return api.ProblemOf(err, "organization", "")
	}
	httpapi.WriteJSON(w, http.StatusCreated, showOrganization(organization))
	return nil
}

func (a API) listOrganizations(w http.ResponseWriter, r *http.Request) error {
	after, limit, err := api.PageOf(r)
	if err != nil {
		return err
	}
	found, err := a.Organizations.List(r.Context(), api.CallerOf(r), after, limit+1)
	if err != nil {
		return err
	}
	httpapi.WriteList(w, r, found, limit, showOrganization, func(o tenants.Organization) query.Position {
		return query.Position{At: o.CreatedAt, ID: o.ID}
	})
	return nil
}
