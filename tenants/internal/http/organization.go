package http

import (
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/postgres"
	"github.com/weirlog/weir/tenants/internal/registrar"
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

func (a *API) createOrganization(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Name string       `json:"name"`
		Tier tenants.Tier `json:"tier"`
	}
	request, err := a.requestOf(r)
	if err != nil {
		return err
	}
	if err := httpapi.ReadJSON(w, r, &body); err != nil {
		return err
	}
	organization, err := a.registrar.CreateOrganization(r.Context(), request, body.Name, body.Tier)
	if err != nil {
		return problemOf(err, "organization", "")
	}
	httpapi.WriteJSON(w, http.StatusCreated, showOrganization(organization))
	return nil
}

func (a *API) listOrganizations(w http.ResponseWriter, r *http.Request) error {
	after, limit, err := pageOf(r)
	if err != nil {
		return err
	}
	found, err := a.registrar.Organizations(r.Context(), callerOf(r), after, limit+1)
	if err != nil {
		return err
	}
	listOf(w, found, limit, showOrganization, func(o tenants.Organization) postgres.Position {
		return postgres.Position{At: o.CreatedAt, ID: o.ID}
	})
	return nil
}

func (a *API) showOneOrganization(w http.ResponseWriter, r *http.Request) error {
	id := chi.URLParam(r, "id")
	organization, err := a.registrar.Organization(r.Context(), callerOf(r), id)
	if err != nil {
		return problemOf(err, "organization", id)
	}
	httpapi.WriteJSON(w, http.StatusOK, showOrganization(organization))
	return nil
}

func (a *API) renameOrganization(w http.ResponseWriter, r *http.Request) error {
	request, name, err := a.renaming(w, r)
	if err != nil {
		return err
	}
	id := chi.URLParam(r, "id")
	organization, err := a.registrar.RenameOrganization(r.Context(), request, id, name)
	if err != nil {
		return problemOf(err, "organization", id)
	}
	httpapi.WriteJSON(w, http.StatusOK, showOrganization(organization))
	return nil
}

// renaming reads a request that gives something another name.
func (a *API) renaming(w http.ResponseWriter, r *http.Request) (request registrar.Request, name string, err error) {
	var body struct {
		Name string `json:"name"`
	}
	if request, err = a.requestOf(r); err != nil {
		return request, "", err
	}
	err = httpapi.ReadJSON(w, r, &body)
	return request, body.Name, err
}
