package registry

import (
	"net/http"
	"time"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/api"
	"github.com/weirlog/weir/tenants/internal/query"
)

type serviceTokenJSON struct {
	ID            string     `json:"id"`
	Token         string     `json:"token,omitempty"` // in the answer to its creation only
	Prefix        string     `json:"prefix"`          // beginning of the token
	Last4         string     `json:"last4"`           // end of the token
	Organization  string     `json:"organization"`    // "*": bound to the installation
	Name          string     `json:"name"`
	Scopes        []string   `json:"scopes"`
	State         string     `json:"state"`
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

func (a API) createServiceToken(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Organization string   `json:"organization"`
		Name         string   `json:"name"`
		Scopes       []string `json:"scopes"`
	}
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
