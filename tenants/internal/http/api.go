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
	"github.com/weirlog/weir/tenants/internal/changes"
	"github.com/weirlog/weir/tenants/internal/leak"
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
func Mount(router chi.Router, registrar *registrar.Registrar, guard *identity.Guard, changed *changes.Limiter, clock func() time.Time,
	trusted []netip.Prefix) {
	api := &API{registrar: registrar, clock: clock, proxies: trusted}
	document := httpapi.Document(openAPI)
	router.Get("/v1/openapi.json", document) // a gateway answers this path with the parts of all modules
	router.Get("/v1/tenants/openapi.json", document)
	router.With(guard.RequireScope(auditScope, adminScope)).Get("/v1/audit-events", httpapi.Handle(api.listAuditEvents))
	router.Group(func(admin chi.Router) {
		admin.Use(guard.RequireScope(adminScope), changed.Limit(httpapi.Handle), body.Whole, guard.RequireScope(adminScope))
		admin.Post("/v1/organizations", httpapi.Handle(api.createOrganization))
		admin.Get("/v1/organizations", httpapi.Handle(api.listOrganizations))
		admin.Get("/v1/organizations/{id}", showing("organization", registrar.Organization, showOrganization))
		admin.Patch("/v1/organizations/{id}", changing(api, "organization", nameOf, registrar.RenameOrganization, showOrganization))
		admin.Post("/v1/projects", httpapi.Handle(api.createProject))
		admin.Get("/v1/projects", listing("organization", oneOrganizationOf, registrar.Projects, showProject, placeOfProject))
		admin.Patch("/v1/projects/{id}", changing(api, "project", nameOf, registrar.RenameProject, showProject))
		admin.Post("/v1/api-keys", httpapi.Handle(api.createAPIKey))
		admin.Get("/v1/api-keys", httpapi.Handle(api.listAPIKeys))
		admin.Get("/v1/api-keys/{id}", httpapi.Handle(api.getAPIKey))
		admin.Patch("/v1/api-keys/{id}", httpapi.Handle(api.changeAPIKey))
		admin.Post("/v1/api-keys/{id}/rotate", httpapi.Handle(api.rotateAPIKey))
		admin.Post("/v1/api-keys/{id}/revoke", httpapi.Handle(api.revokeAPIKey))
		admin.Get("/v1/organizations/{id}/security-policy", showing("organization", registrar.SecurityPolicy, showSecurityPolicy))
		admin.Put("/v1/organizations/{id}/security-policy", changing(api, "organization", securityPolicyOf, registrar.SetSecurityPolicy, showSecurityPolicy))
		admin.Post("/v1/service-tokens", httpapi.Handle(api.createServiceToken))
		admin.Get("/v1/service-tokens", listing("organization", organizationOf, registrar.ServiceTokens, showServiceToken, placeOfServiceToken))
		admin.Post("/v1/service-tokens/{id}/revoke", changing(api, "service token", reasonOf, registrar.RevokeServiceToken, showServiceToken))
		admin.Get("/v1/sessions", listing("member", memberOf, registrar.Sessions, showSession, placeOfSession))
		admin.Post("/v1/sessions/{id}/revoke", changing(api, "session", reasonOf, registrar.RevokeSession, showSession))
		admin.Post("/v1/members", httpapi.Handle(api.createMember))
		admin.Get("/v1/members", listing("organization", organizationOf, registrar.Members, showMember, placeOfMember))
		admin.Patch("/v1/members/{id}", changing(api, "member", roleOf, registrar.ChangeRole, showMember))
		admin.Post("/v1/members/{id}/reset-code", httpapi.Handle(api.createResetCode))
		admin.Post("/v1/members/{id}/remove", changing(api, "member", nothing, without(registrar.RemoveMember), showMember))
		admin.Post("/v1/invitations", httpapi.Handle(api.createInvitation))
		admin.Get("/v1/invitations", listing("organization", organizationOf, registrar.Invitations, api.showInvitation, placeOfInvitation))
		admin.Post("/v1/invitations/{id}/resend", httpapi.Handle(api.resendInvitation))
		admin.Post("/v1/invitations/{id}/revoke", changing(api, "invitation", nothing, without(registrar.RevokeInvitation), api.showInvitation))
	})
}

// MountLeakReports adds the route for reports of leaked keys, which are signed by one of keys; nil: they are not taken.
func MountLeakReports(router chi.Router, registrar *registrar.Registrar, guard *identity.Guard, keys *leak.Keys) {
	api := &API{registrar: registrar, leakKeys: keys}
	router.Post("/v1/leak-reports", httpapi.Handle(func(w http.ResponseWriter, r *http.Request) error {
		if err := guard.Ready(); err != nil {
			return err
		}
		return api.reportLeaks(w, r)
	}))
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
		Caller: callerOf(r), Address: httpapi.ClientAddress(r, a.proxies), Client: r.UserAgent(),
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

// optional is nil for the zero time, which is null in JSON.
func optional(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	at = at.UTC()
	return &at
}
