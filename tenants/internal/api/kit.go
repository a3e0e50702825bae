package api

import (
	"net/http"
	"net/netip"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/body"
	"github.com/weirlog/weir/tenants/internal/changes"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// AdminScope is the scope of routes that have no other.
const AdminScope = "tenants:admin"

// A Kit makes the rooms' handlers.
type Kit struct {
	Guard          *identity.Guard
	Clock          func() time.Time
	TrustedProxies []netip.Prefix // whose X-Forwarded-For is trusted
}

// Mount adds the rooms' routes and their description.
func (k *Kit) Mount(router chi.Router, changed *changes.Limiter, operations []openapi.Operation) {
	httpapi.Describe(router, module.Name, Describe(operations))
	for _, operation := range withScopes(operations) {
		if operation.IsOpen() {
			operation.Mount(router)
			continue
		}
		scoped := k.Guard.RequireScope(operation.Scopes[0], operation.Scopes[1:]...)
		operation.Mount(router.With(scoped, changed.Limit(httpapi.Handle), body.Whole, scoped))
	}
}

// CallerOf is the sender of a request.
func CallerOf(r *http.Request) tenants.Caller {
	principal := identity.FromContext(r.Context())
	caller := tenants.Caller{ID: principal.ID, Organization: principal.Organization, Scopes: principal.Scopes}
	if principal.Organization == "" {
		caller.Organization = tenants.Installation
	}
	return caller
}

// RequestOf is a request to change something.
func (k *Kit) RequestOf(r *http.Request) (unitofwork.Request, error) {
	key, err := httpapi.IdempotencyKey(r)
	return unitofwork.Request{
		Caller: CallerOf(r), Address: httpapi.ClientAddress(r, k.TrustedProxies), Client: r.UserAgent(),
		ID: httpapi.RequestID(r.Context()), IdempotencyKey: key,
	}, err
}

// RequestWith is a request to change
// something. It decodes the body into body.
func (k *Kit) RequestWith(w http.ResponseWriter, r *http.Request, body any) (unitofwork.Request, error) {
	request, err := k.RequestOf(r)
	if err != nil {
		return request, err
	}
	return request, httpapi.ReadJSON(w, r, body)
}
