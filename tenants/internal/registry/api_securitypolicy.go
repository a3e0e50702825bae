package registry

import (
	"fmt"
	"net/http"
	"time"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/api"
)

func securityPolicyOperations(a API) []openapi.Operation {
	return []openapi.Operation{
		{
			Route: "GET /v1/organizations/{id}/security-policy", ID: "getSecurityPolicy",
			Handle:  api.ShowHandler("organization", a.Policies.Policy, showSecurityPolicy),
			Summary: "What happens by itself to keys that somebody else may have",
			Answer:  openapi.Answer{Type: securityPolicyJSON{}, Description: "The policy"},
		},
		{
			Route: "PUT /v1/organizations/{id}/security-policy", ID: "setSecurityPolicy",
			Handle:  api.ChangeHandler(a.Kit, "organization", securityPolicyOf, a.Policies.Set, showSecurityPolicy),
			Summary: "Set the security policy, whole",
			Body:    openapi.Body{Type: newSecurityPolicyBody{}},
			Answer:  openapi.Answer{Type: securityPolicyJSON{}, Description: "The policy"},
		},
	}
}

type securityPolicyJSON struct {
	Organization  string     `json:"organization"`
	LeakedKeys    string     `json:"leaked_keys" enum:"notify,rotate,revoke" description:"What happens to a key that was found in public. It is always flagged; rotate: it ends 24 hours later, revoke: at once"`
	PlainHTTPKeys string     `json:"plain_http_keys" enum:"flag,revoke" description:"What happens to a key that arrived over plain HTTP. It is always flagged; revoke: it ends at once"`
	Passwords     string     `json:"passwords" enum:"allowed,off" description:"Whether members may sign in with passwords; off: with passkeys or by the identity provider alone. Only an operator switches it over the API"`
	SetAt         *time.Time `json:"set_at" description:"null: the default"`
}

func showSecurityPolicy(p tenants.SecurityPolicy) securityPolicyJSON {
	return securityPolicyJSON{
		Organization: p.Organization, LeakedKeys: string(p.LeakedKeys), PlainHTTPKeys: string(p.PlainHTTPKeys),
		Passwords: p.PasswordPolicy(), SetAt: api.Optional(p.SetAt),
	}
}

type newSecurityPolicyBody struct {
	LeakedKeys    tenants.LeakedPolicy    `json:"leaked_keys" required:"true" enum:"notify,rotate,revoke" description:"What happens to a key that was found in public. It is always flagged; rotate: it ends 24 hours later, revoke: at once"`
	PlainHTTPKeys tenants.PlainHTTPPolicy `json:"plain_http_keys" required:"true" enum:"flag,revoke" description:"What happens to a key that arrived over plain HTTP. It is always flagged; revoke: it ends at once"`
	Passwords     string                  `json:"passwords" enum:"allowed,off" description:"Whether members may sign in with passwords; off: with passkeys or by the identity provider alone. Only an operator switches it over the API. Left out: as it is"`
}

// securityPolicyOf is the policy in the body of a request.
func securityPolicyOf(w http.ResponseWriter, r *http.Request) (NewPolicy, error) {
	var body newSecurityPolicyBody
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
