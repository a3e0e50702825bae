package registry

import (
	"net/http"
	"time"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/api"
	"github.com/weirlog/weir/tenants/internal/query"
)

func serviceTokenOperations(a API) []openapi.Operation {
	return []openapi.Operation{
		{
			Route: "POST /v1/service-tokens", Handle: a.createServiceToken, ID: "createServiceToken",
			Summary: "Issue a service token, with no scope that the caller lacks unless it is an operator",
			Headers: api.Creation{},
			Body:    openapi.Body{Type: newServiceTokenBody{}},
			Answer:  openapi.Answer{Status: http.StatusCreated, Type: serviceTokenJSON{}, Description: "Issued"},
			Problems: map[int]string{
				http.StatusNotFound: api.Unknown,
				http.StatusConflict: "The same request was answered before, with a secret that is not kept; or " + api.LimitReached,
			},
		},
		{
			Route: "GET /v1/service-tokens", ID: "listServiceTokens",
			Handle:   api.ListHandler("organization", api.OrganizationOf, a.Tokens.List, showServiceToken, placeOfServiceToken),
			Summary:  "The service tokens of an organization, or of the installation",
			Query:    api.OrganizationQuery{},
			Answer:   openapi.Answer{Type: httpapi.List[serviceTokenJSON]{}, Description: "A page, from old to new"},
			Problems: map[int]string{http.StatusNotFound: api.Unknown},
		},
		{
			Route: "POST /v1/service-tokens/{id}/revoke", ID: "revokeServiceToken",
			Handle:  api.ChangeHandler(a.Kit, "service token", api.ReasonOf, a.Tokens.Revoke, showServiceToken),
			Summary: "Revoke a service token permanently, in every replica within a second, or once the broker is back. Again: changes nothing",
			Body:    openapi.Body{Type: api.ReasonBody{}, Optional: true},
			Answer:  openapi.Answer{Type: serviceTokenJSON{}, Description: "The token's state"},
		},
	}
}

type serviceTokenJSON struct {
	ID            string     `json:"id" pattern:"^[A-Za-z0-9_-]+$" minLength:"1" maxLength:"64"`
	Token         string     `json:"token,omitempty" pattern:"^weirsvc_[0-9a-f]{48}$" description:"In the answer to its creation only"`
	Prefix        string     `json:"prefix" description:"How the token begins"`
	Last4         string     `json:"last4" description:"How the token ends"`
	Organization  string     `json:"organization" description:"Its id, or * for the installation"`
	Name          string     `json:"name" minLength:"1" maxLength:"200" description:"Without control characters; white space around it is dropped"`
	Scopes        []string   `json:"scopes" pattern:"^[a-z][a-z-]{0,30}:[a-z][a-z-]{0,30}$" minItems:"1" maxItems:"32"`
	State         string     `json:"state" enum:"active,revoked"`
	CreatedAt     time.Time  `json:"created_at"`
	RevokedAt     *time.Time `json:"revoked_at"`
	RevokedReason *string    `json:"revoked_reason"`
}

func showServiceToken(s tenants.ServiceToken) serviceTokenJSON {
	return serviceTokenJSON{
		ID: s.ID, Prefix: tenants.ServiceTokenPrefix + s.Digest.First, Last4: s.Digest.Last, Organization: s.Organization,
		Name: s.Name, Scopes: s.Scopes, State: string(s.State()), CreatedAt: s.IssuedAt.UTC(),
		RevokedAt: api.Optional(s.Revocation.At), RevokedReason: api.Reason(s.Revocation),
	}
}

func placeOfServiceToken(s tenants.ServiceToken) query.Position {
	return query.Position{At: s.IssuedAt, ID: s.ID}
}

type newServiceTokenBody struct {
	Organization string   `json:"organization" required:"true" description:"Its id, or * for the installation (operators only)"`
	Name         string   `json:"name" required:"true" minLength:"1" maxLength:"200" description:"Without control characters; white space around it is dropped"`
	Scopes       []string `json:"scopes" required:"true" pattern:"^[a-z][a-z-]{0,30}:[a-z][a-z-]{0,30}$" minItems:"1" maxItems:"32"`
}

func (a API) createServiceToken(w http.ResponseWriter, r *http.Request) error {
	var body newServiceTokenBody
	request, err := a.RequestWith(w, r, &body)
	if err != nil {
		return err
	}
	token, secret, err := a.Tokens.Issue(r.Context(), request, NewToken(body))
	if err != nil {
		return api.ProblemOf(err, "organization", body.Organization)
	}
	shown := showServiceToken(token)
	shown.Token = secret.Reveal()
	httpapi.WriteJSON(w, http.StatusCreated, shown)
	return nil
}
