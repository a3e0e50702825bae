// Package http is the HTTP API of tenants: organizations, projects, API keys, service tokens, members and invitations.
package http

import (
	"net/http"
	"net/netip"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/body"
	"github.com/weirlog/weir/tenants/internal/leak"
	"github.com/weirlog/weir/tenants/internal/postgres"
	"github.com/weirlog/weir/tenants/internal/registrar"
)

// adminScope is what a service token needs for everything here.
const adminScope = "tenants:admin"

// An API serves requests with a registrar.
type API struct {
	registrar *registrar.Registrar
	clock     func() time.Time
	proxies   []netip.Prefix // whose X-Forwarded-For says where a request came from
	leakKeys  *leak.Keys     // nil: leak reports are not taken
}

// Mount adds the routes to router. All but the description need a service token with the scope tenants:admin; the audit
// can be read with audit:read, too. The
// trusted proxies are those whose X-Forwarded-For says where a request came from.
func Mount(router chi.Router, registrar *registrar.Registrar, credentials *identity.Credentials, clock func() time.Time,
	trusted []netip.Prefix) {
	api := &API{registrar: registrar, clock: clock, proxies: trusted}
	router.Get("/v1/openapi.json", serveOpenAPI)
	router.Get("/v1/tenants/openapi.json", serveOpenAPI)
	router.With(identity.RequireScope(credentials, auditScope, adminScope)).Get("/v1/audit-events", httpapi.Handle(api.listAuditEvents))
	router.Group(func(admin chi.Router) {
		admin.Use(identity.RequireScope(credentials, adminScope), body.Whole, identity.RequireScope(credentials, adminScope))
		admin.Post("/v1/organizations", httpapi.Handle(api.createOrganization))
		admin.Get("/v1/organizations", httpapi.Handle(api.listOrganizations))
		admin.Get("/v1/organizations/{id}", httpapi.Handle(api.showOneOrganization))
		admin.Patch("/v1/organizations/{id}", httpapi.Handle(api.renameOrganization))
		admin.Post("/v1/projects", httpapi.Handle(api.createProject))
		admin.Get("/v1/projects", httpapi.Handle(api.listProjects))
		admin.Patch("/v1/projects/{id}", httpapi.Handle(api.renameProject))
		admin.Post("/v1/api-keys", httpapi.Handle(api.createAPIKey))
		admin.Get("/v1/api-keys", httpapi.Handle(api.listAPIKeys))
		admin.Get("/v1/api-keys/{id}", httpapi.Handle(api.getAPIKey))
		admin.Patch("/v1/api-keys/{id}", httpapi.Handle(api.changeAPIKey))
		admin.Post("/v1/api-keys/{id}/rotate", httpapi.Handle(api.rotateAPIKey))
		admin.Post("/v1/api-keys/{id}/revoke", httpapi.Handle(api.revokeAPIKey))
		admin.Get("/v1/organizations/{id}/security-policy", httpapi.Handle(api.getSecurityPolicy))
		admin.Put("/v1/organizations/{id}/security-policy", httpapi.Handle(api.setSecurityPolicy))
		admin.Post("/v1/service-tokens", httpapi.Handle(api.createServiceToken))
		admin.Get("/v1/service-tokens", httpapi.Handle(api.listServiceTokens))
		admin.Post("/v1/service-tokens/{id}/revoke", httpapi.Handle(api.revokeServiceToken))
		admin.Get("/v1/sessions", httpapi.Handle(api.listSessions))
		admin.Post("/v1/sessions/{id}/revoke", httpapi.Handle(api.revokeSession))
		admin.Post("/v1/members", httpapi.Handle(api.createMember))
		admin.Get("/v1/members", httpapi.Handle(api.listMembers))
		admin.Patch("/v1/members/{id}", httpapi.Handle(api.changeMember))
		admin.Post("/v1/members/{id}/reset-code", httpapi.Handle(api.createResetCode))
		admin.Post("/v1/members/{id}/remove", httpapi.Handle(api.removeMember))
		admin.Post("/v1/invitations", httpapi.Handle(api.createInvitation))
		admin.Get("/v1/invitations", httpapi.Handle(api.listInvitations))
		admin.Post("/v1/invitations/{id}/resend", httpapi.Handle(api.resendInvitation))
		admin.Post("/v1/invitations/{id}/revoke", httpapi.Handle(api.revokeInvitation))
	})
}

// MountLeakReports adds the route for reports of leaked keys, which are signed by one of keys; nil: they are not taken.
func MountLeakReports(router chi.Router, registrar *registrar.Registrar, keys *leak.Keys) {
	api := &API{registrar: registrar, leakKeys: keys}
	router.Post("/v1/leak-reports", httpapi.Handle(api.reportLeaks))
}

// callerOf is who sent a request.
func callerOf(r *http.Request) tenants.Caller {
	principal := identity.FromContext(r.Context())
	caller := tenants.Caller{ID: principal.ID, Organization: principal.Organization, Scopes: principal.Scopes}
	if principal.Organization == "" {
		caller.Organization = tenants.Installation
	}
	return caller
}

// requestOf is a request that changes something.
func (a *API) requestOf(r *http.Request) (registrar.Request, error) {
	key, err := idempotencyKey(r)
	return registrar.Request{
		Caller: callerOf(r), Address: httpapi.ClientAddress(r, a.proxies), Client: httpapi.Redact(r.UserAgent()),
		ID: httpapi.RequestID(r.Context()), IdempotencyKey: key,
	}, err
}

// maxIdempotencyKey is the longest Idempotency-Key, in characters.
const maxIdempotencyKey = 255

// idempotencyKey is the header Idempotency-Key: "" or 1 to 255 printable ASCII characters.
func idempotencyKey(r *http.Request) (string, error) {
	values, given := r.Header["Idempotency-Key"]
	if !given {
		return "", nil
	}
	key := values[0]
	valid := len(values) == 1 && key != "" && len(key) <= maxIdempotencyKey
	for i := range len(key) {
		valid = valid && key[i] >= ' ' && key[i] <= '~'
	}
	if !valid {
		return "", httpapi.Invalid("", "invalid_idempotency_key", "The header Idempotency-Key is not valid.",
			"Send one of 1 to 255 printable ASCII characters, such as a UUID.")
	}
	return key, nil
}

// pageOf is where a list of requests goes on, and how far. A parameter that is none of filters is refused: a filter that
// was overlooked would show too much.
func pageOf(r *http.Request, filters ...string) (after postgres.Position, limit int, err error) {
	if err := httpapi.OnlyKnown(r, nil, append(filters, "limit", "cursor")...); err != nil {
		return after, 0, err
	}
	page, err := httpapi.ParsePage(r)
	if err != nil || page.Cursor == "" {
		return after, page.Limit, err
	}
	if err := httpapi.DecodeCursor(page.Cursor, &after); err != nil {
		return after, 0, err
	}
	if !tenants.IsID(after.ID) {
		return after, 0, httpapi.Invalid("?cursor", "invalid_cursor", "The cursor is none of this list.",
			"Use next_cursor of the page before, unchanged, or leave cursor out to start again.")
	}
	return after, page.Limit, nil
}

// listOf answers with one page of found, which may hold one item more than limit.
func listOf[F, I any](w http.ResponseWriter, found []F, limit int, item func(F) I, place func(F) postgres.Position) {
	list := httpapi.NewList(found, limit, func(last F) any { return place(last) })
	items := make([]I, len(list.Items))
	for i, f := range list.Items {
		items[i] = item(f)
	}
	httpapi.WriteJSON(w, http.StatusOK, httpapi.List[I]{Items: items, NextCursor: list.NextCursor})
}

// optional is nil for the zero time, which is null in JSON.
func optional(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	at = at.UTC()
	return &at
}

// reasonOf is the reason in the body of a revocation. The body may be absent: an emergency must not fail for lack of one.
func reasonOf(w http.ResponseWriter, r *http.Request) (string, error) {
	var body struct {
		Reason string `json:"reason"`
	}
	if r.ContentLength == 0 {
		return "", nil
	}
	err := httpapi.ReadJSON(w, r, &body)
	return body.Reason, err
}
