// Package http is the HTTP API of sessions.
package http

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/tenants/internal/api"
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
}

// memberOf is the member that a list is about.
func memberOf(r *http.Request) string { return r.URL.Query().Get("member") }
