package registry

import (
	"net/http"
	"time"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/api"
	"github.com/weirlog/weir/tenants/internal/query"
)

type organizationJSON struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Tier      string    `json:"tier"`
	CreatedAt time.Time `json:"created_at"`
}

func showOrganization(o tenants.Organization) organizationJSON {
	return organizationJSON{ID: o.ID, Name: o.Name, Tier: string(o.Tier), CreatedAt: o.CreatedAt.UTC()}
}

func (a API) createOrganization(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Name string       `json:"name"`
		Tier tenants.Tier `json:"tier"`
	}
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
