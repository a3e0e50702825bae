package http

import (
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/registrar"
)

type securityPolicyJSON struct {
	Organization  string     `json:"organization"`
	LeakedKeys    string     `json:"leaked_keys"`
	PlainHTTPKeys string     `json:"plain_http_keys"`
	SetAt         *time.Time `json:"set_at"` // null: the default
}

func showSecurityPolicy(p tenants.SecurityPolicy) securityPolicyJSON {
	return securityPolicyJSON{
		Organization: p.Organization, LeakedKeys: string(p.LeakedKeys), PlainHTTPKeys: string(p.PlainHTTPKeys), SetAt: optional(p.SetAt),
	}
}

func (a *API) getSecurityPolicy(w http.ResponseWriter, r *http.Request) error {
	id := chi.URLParam(r, "id")
	policy, err := a.registrar.SecurityPolicy(r.Context(), callerOf(r), id)
	if err != nil {
		return problemOf(err, "organization", id)
	}
	httpapi.WriteJSON(w, http.StatusOK, showSecurityPolicy(policy))
	return nil
}

func (a *API) setSecurityPolicy(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		LeakedKeys    tenants.LeakedPolicy    `json:"leaked_keys"`
		PlainHTTPKeys tenants.PlainHTTPPolicy `json:"plain_http_keys"`
	}
	request, err := a.requestOf(r)
	if err != nil {
		return err
	}
	if err := httpapi.ReadJSON(w, r, &body); err != nil {
		return err
	}
	id := chi.URLParam(r, "id")
	policy, err := a.registrar.SetSecurityPolicy(r.Context(), request, id, registrar.NewSecurityPolicy(body))
	if err != nil {
		return problemOf(err, "organization", id)
	}
	httpapi.WriteJSON(w, http.StatusOK, showSecurityPolicy(policy))
	return nil
}
