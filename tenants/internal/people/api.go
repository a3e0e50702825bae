package people

import (
	_ "embed"
	"errors"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/api"
	"github.com/weirlog/weir/tenants/internal/password"
	"github.com/weirlog/weir/tenants/internal/query"
)

// OpenAPI describes the routes of the room.
//
//go:embed openapi.json
var OpenAPI []byte

// An API serves members and invitations to service tokens.
type API struct {
	*api.Kit
	Services
}

// NewAPI returns the API of services.
func NewAPI(kit *api.Kit, services Services) API { return API{kit, services} }

// Mount adds the routes to router.
func (a API) Mount(admin chi.Router) {
	admin.Post("/v1/members", httpapi.Handle(a.createMember))
	admin.Get("/v1/members", api.ListHandler("organization", api.OrganizationOf, a.Members.List, showMember, placeOfMember))
	admin.Patch("/v1/members/{id}", api.ChangeHandler(a.Kit, "member", roleOf, a.Members.ChangeRole, showMember))
	admin.Post("/v1/members/{id}/reset-code", httpapi.Handle(a.createResetCode))
	admin.Post("/v1/members/{id}/remove", api.ChangeHandler(a.Kit, "member", api.NoBody, api.WithoutBody(a.Members.Remove), showMember))
	admin.Post("/v1/invitations", httpapi.Handle(a.createInvitation))
	admin.Get("/v1/invitations", api.ListHandler("organization", api.OrganizationOf, a.Invitations.List, a.showInvitation, placeOfInvitation))
	admin.Post("/v1/invitations/{id}/resend", httpapi.Handle(a.resendInvitation))
	admin.Post("/v1/invitations/{id}/revoke", api.ChangeHandler(a.Kit, "invitation", api.NoBody, api.WithoutBody(a.Invitations.Revoke), a.showInvitation))
}

// problemOf adds this room's errors to api.ProblemOf.
func problemOf(err error, what, id string) error {
	switch {
	case errors.Is(err, password.ErrBusy):
		return httpapi.NewProblem(http.StatusTooManyRequests, "overloaded",
			"Too many passwords are waiting to be hashed. Send the request again.").RetryAfter(password.RetryAfter)
	case errors.Is(err, ErrEmailTaken):
		return httpapi.NewProblem(http.StatusConflict, httpapi.CodeConflict,
			"Somebody already signs in with this e-mail address. Use another one.")
	}
	return api.ProblemOf(err, what, id)
}

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

func (a API) createMember(w http.ResponseWriter, r *http.Request) error {
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
	member, err := a.Members.Add(r.Context(), request, NewMember(body))
	if err != nil {
		return problemOf(err, "organization", body.Organization)
	}
	httpapi.WriteJSON(w, http.StatusCreated, showMember(member))
	return nil
}

// roleOf is the role in the body of a request to change a role.
func roleOf(w http.ResponseWriter, r *http.Request) (tenants.Role, error) {
	var body struct {
		Role tenants.Role `json:"role"`
	}
	err := httpapi.ReadJSON(w, r, &body)
	return body.Role, err
}

// createResetCode responds with a code that resets
// the member's password; no other response has it.
func (a API) createResetCode(w http.ResponseWriter, r *http.Request) error {
	request, err := a.RequestOf(r)
	if err != nil {
		return err
	}
	id := chi.URLParam(r, "id")
	member, code, err := a.Codes.IssueReset(r.Context(), request, id)
	if err != nil {
		return api.ProblemOf(err, "member", id)
	}
	httpapi.WriteJSON(w, http.StatusCreated, struct {
		Member    string    `json:"member"`
		Code      string    `json:"code"`
		ExpiresAt time.Time `json:"expires_at"`
	}{member.ID, code.Reveal(), member.Reset.ExpiresAt.UTC()})
	return nil
}
