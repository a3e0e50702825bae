package http

import (
	"net/http"
	"time"

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

// securityPolicyOf is the policy in the body of a request that sets it.
func securityPolicyOf(w http.ResponseWriter, r *http.Request) (registrar.NewSecurityPolicy, error) {
	var body struct {
		LeakedKeys    tenants.LeakedPolicy    `json:"leaked_keys"`
		PlainHTTPKeys tenants.PlainHTTPPolicy `json:"plain_http_keys"`
	}
	err := httpapi.ReadJSON(w, r, &body)
	return registrar.NewSecurityPolicy(body), err
}
