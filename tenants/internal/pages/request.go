package pages

import (
	"net/http"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// CallerOf is the signed-in member, who may access their own organization.
func CallerOf(r *http.Request) tenants.Caller {
	principal := identity.FromContext(r.Context())
	return tenants.Caller{ID: principal.Member, Organization: principal.Organization}
}

// RoleOf is the signed-in member's role, as in their session.
func RoleOf(r *http.Request) tenants.Role {
	return tenants.Role(identity.FromContext(r.Context()).Role())
}

// Anonymous is a request before authentication.
func (k *Kit) Anonymous(r *http.Request) unitofwork.Request {
	return unitofwork.Request{
		Address: httpapi.ClientAddress(r, k.TrustedProxies), Client: r.UserAgent(), ID: httpapi.RequestID(r.Context()),
	}
}

// RequestOf is a form's request with its idempotency
// key, so that a form sent twice is executed once.
func (k *Kit) RequestOf(r *http.Request) unitofwork.Request {
	request := k.Anonymous(r)
	request.Caller, request.Role = CallerOf(r), RoleOf(r)
	if word := r.PostForm.Get("form"); tenants.IsID(word) {
		request.IdempotencyKey = word
	}
	return request
}
