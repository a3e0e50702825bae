package http

import (
	"net/http"
	"time"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/registrar"
)

type memberJSON struct {
	ID           string    `json:"id"`
	Organization string    `json:"organization"`
	Email        string    `json:"email"`
	Name         string    `json:"name"`
	Role         string    `json:"role"`
	CreatedAt    time.Time `json:"created_at"`
}

func showMember(m tenants.Member) memberJSON {
	return memberJSON{
		ID: m.ID, Organization: m.Organization, Email: m.Email, Name: m.Name, Role: string(m.Role), CreatedAt: m.AddedAt.UTC(),
	}
}

func (a *API) createMember(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Organization string           `json:"organization"`
		Email        string           `json:"email"`
		Name         string           `json:"name"`
		Role         tenants.Role     `json:"role"`
		Password     tenants.Password `json:"password"`
	}
	request, err := a.requestOf(r)
	if err != nil {
		return err
	}
	if err := httpapi.ReadJSON(w, r, &body); err != nil {
		return err
	}
	member, err := a.registrar.AddMember(r.Context(), request, registrar.NewMember(body))
	if err != nil {
		return problemOf(err, "organization", body.Organization)
	}
	httpapi.WriteJSON(w, http.StatusCreated, showMember(member))
	return nil
}
