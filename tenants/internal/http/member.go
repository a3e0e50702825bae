package http

import (
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/api"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/registrar"
)

type memberJSON struct {
	ID           string     `json:"id"`
	Organization string     `json:"organization"`
	Email        string     `json:"email"`
	Name         string     `json:"name"`
	Role         string     `json:"role"`
	Verified     bool       `json:"email_verified"`
	CreatedAt    time.Time  `json:"created_at"`
	RemovedAt    *time.Time `json:"removed_at"`
}

func showMember(m tenants.Member) memberJSON {
	return memberJSON{
		ID: m.ID, Organization: m.Organization, Email: m.Email, Name: m.Name, Role: string(m.Role),
		Verified: m.Identity != (tenants.ProviderIdentity{}), CreatedAt: m.AddedAt.UTC(), RemovedAt: api.Optional(m.RemovedAt),
	}
}

func placeOfMember(m tenants.Member) query.Position {
	return query.Position{At: m.AddedAt, ID: m.ID}
}

func (a *API) createMember(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Organization string           `json:"organization"`
		Email        string           `json:"email"`
		Name         string           `json:"name"`
		Role         tenants.Role     `json:"role"`
		Password     tenants.Password `json:"password"`
	}
	request, err := a.RequestWith(w, r, &body)
	if err != nil {
		return err
	}
	member, err := a.registrar.AddMember(r.Context(), request, registrar.NewMember(body))
	if err != nil {
		return problemOf(err, "organization", body.Organization)
	}
	httpapi.WriteJSON(w, http.StatusCreated, showMember(member))
	return nil
}

// roleOf is the role in the body of a request that gives a member another one.
func roleOf(w http.ResponseWriter, r *http.Request) (tenants.Role, error) {
	var body struct {
		Role tenants.Role `json:"role"`
	}
	err := httpapi.ReadJSON(w, r, &body)
	return body.Role, err
}

// createResetCode answers with a code for the member to set another password with; no other answer has it.
func (a *API) createResetCode(w http.ResponseWriter, r *http.Request) error {
	request, err := a.RequestOf(r)
	if err != nil {
		return err
	}
	id := chi.URLParam(r, "id")
	member, code, err := a.registrar.IssueResetCode(r.Context(), request, id)
	if err != nil {
		return problemOf(err, "member", id)
	}
	httpapi.WriteJSON(w, http.StatusCreated, struct {
		Member    string    `json:"member"`
		Code      string    `json:"code"`
		ExpiresAt time.Time `json:"expires_at"`
	}{member.ID, code.Reveal(), member.Reset.ExpiresAt.UTC()})
	return nil
}
