// Package http is the HTTP API of tenants: organizations, projects, service tokens, members and invitations.
package http

import (
	"errors"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/tenants/internal/api"
	"github.com/weirlog/weir/tenants/internal/password"
	"github.com/weirlog/weir/tenants/internal/registrar"
)

// An API serves requests with a registrar.
type API struct {
	*api.Kit
	registrar *registrar.Registrar
}

// New returns the API of a registrar.
func New(kit *api.Kit, registrar *registrar.Registrar) *API {
	return &API{kit, registrar}
}

// Mount adds the routes to router.
func (a *API) Mount(admin chi.Router) {
	r := a.registrar
	admin.Get("/v1/sessions", api.Listing("member", memberOf, r.Sessions, showSession, placeOfSession))
	admin.Post("/v1/sessions/{id}/revoke", api.Changing(a.Kit, "session", api.ReasonOf, r.RevokeSession, showSession))
	admin.Post("/v1/members", httpapi.Handle(a.createMember))
	admin.Get("/v1/members", api.Listing("organization", api.OrganizationOf, r.Members, showMember, placeOfMember))
	admin.Patch("/v1/members/{id}", api.Changing(a.Kit, "member", roleOf, r.ChangeRole, showMember))
	admin.Post("/v1/members/{id}/reset-code", httpapi.Handle(a.createResetCode))
	admin.Post("/v1/members/{id}/remove", api.Changing(a.Kit, "member", api.Nothing, api.Without(r.RemoveMember), showMember))
	admin.Post("/v1/invitations", httpapi.Handle(a.createInvitation))
	admin.Get("/v1/invitations", api.Listing("organization", api.OrganizationOf, r.Invitations, a.showInvitation, placeOfInvitation))
	admin.Post("/v1/invitations/{id}/resend", httpapi.Handle(a.resendInvitation))
	admin.Post("/v1/invitations/{id}/revoke", api.Changing(a.Kit, "invitation", api.Nothing, api.Without(r.RevokeInvitation), a.showInvitation))
}

// memberOf is the member that a list is about.
func memberOf(r *http.Request) string { return r.URL.Query().Get("member") }

// problemOf is api.ProblemOf for those who sign in, too.
func problemOf(err error, what, id string) error {
	switch {
	case errors.Is(err, password.ErrBusy):
		return httpapi.NewProblem(http.StatusTooManyRequests, "overloaded",
			"Too many passwords are waiting to be hashed. Send the request again.").RetryAfter(password.RetryAfter)
	case errors.Is(err, registrar.ErrEmailTaken):
		return httpapi.NewProblem(http.StatusConflict, httpapi.CodeConflict,
			"Somebody already signs in with this e-mail address. Use another one.")
	}
	return api.ProblemOf(err, what, id)
}
