package registry

import (
	"fmt"
	"net/http"
	"time"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/api"
)

type securityPolicyJSON struct {
	Organization  string     `json:"organization"`
	LeakedKeys    string     `json:"leaked_keys"`
	PlainHTTPKeys string     `json:"plain_http_keys"`
	Passwords     string     `json:"passwords"`
	SetAt         *time.Time `json:"set_at"` // null: the default
}

func showSecurityPolicy(p tenants.SecurityPolicy) securityPolicyJSON {
	return securityPolicyJSON{
		Organization: p.Organization, LeakedKeys: string(p.LeakedKeys), PlainHTTPKeys: string(p.PlainHTTPKeys),
		Passwords: p.PasswordPolicy(), SetAt: api.Optional(p.SetAt),
	}
}

// securityPolicyOf is the policy in the body of a request.
func securityPolicyOf(w http.ResponseWriter, r *http.Request) (NewPolicy, error) {
	var body struct {
		LeakedKeys    tenants.LeakedPolicy    `json:"leaked_keys"`
		PlainHTTPKeys tenants.PlainHTTPPolicy `json:"plain_http_keys"`
		Passwords     string                  `json:"passwords"` // may be absent, as in older clients
	}
	wanted := NewPolicy{}
	if err := httpapi.ReadJSON(w, r, &body); err != nil {
		return wanted, err
	}
	wanted.LeakedKeys, wanted.PlainHTTPKeys = body.LeakedKeys, body.PlainHTTPKeys
	off, known := tenants.ParsePasswordsOff(body.Passwords)
	if wanted.PasswordsOff = off; !known {
		return wanted, httpapi.Invalid("/passwords", httpapi.CodeInvalidRequest, fmt.Sprintf("passwords is %q.", body.Passwords),
			"Use allowed or off, or leave it out to let it be as it is.")
	}
	return wanted, nil
}
