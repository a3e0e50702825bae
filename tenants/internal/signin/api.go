package signin

import (
	"net/http"
	"time"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/api"
	"github.com/weirlog/weir/tenants/internal/query"
)

// An API serves sessions to service tokens.
type API struct {
	*api.Kit
	sessions *Sessions
}

// NewAPI returns the API of the sessions.
func NewAPI(kit *api.Kit, sessions *Sessions) API { return API{kit, sessions} }

// Operations are the routes.
func (a API) Operations() []openapi.Operation {
	return []openapi.Operation{
		{
			Route: "GET /v1/sessions", ID: "listSessions",
			Handle:   api.ListHandler("member", memberOf, a.sessions.List, showSession, placeOfSession),
			Summary:  "The sessions of a member that have neither ended nor expired. Those of owners are shown to operators only",
			Query:    sessionsQuery{},
			Answer:   openapi.Answer{Type: httpapi.List[sessionJSON]{}, Description: "A page, from old to new"},
			Problems: map[int]string{http.StatusNotFound: api.Unknown},
		},
		{
			Route: "POST /v1/sessions/{id}/revoke", ID: "revokeSession",
			Handle: api.ChangeHandler(a.Kit, "session", api.ReasonOf, a.sessions.Revoke, showSession),
			Summary: "End a session at once, in every replica within a second, or once the broker is back. Again: changes nothing. Those of owners are ended by " +
				"operators only",
			Body:   openapi.Body{Type: api.ReasonBody{}, Optional: true},
			Answer: openapi.Answer{Type: sessionJSON{}, Description: "The session's state"},
		},
	}
}

type sessionsQuery struct {
	Member string `query:"member" required:"true" minLength:"1" maxLength:"64" description:"Id of the member"`
	httpapi.Page
}

// memberOf is the member of a list's sessions.
func memberOf(r *http.Request) string { return r.URL.Query().Get("member") }

type sessionJSON struct {
	ID            string     `json:"id" pattern:"^[A-Za-z0-9_-]+$" minLength:"1" maxLength:"64"`
	Organization  string     `json:"organization"`
	Member        string     `json:"member"`
	Method        string     `json:"method" enum:"password,passkey,oidc" description:"How its member proved who they are"`
	State         string     `json:"state" enum:"active,revoked"`
	Address       string     `json:"address" description:"From where it was last started, renewed or confirmed; may be empty"`
	Client        string     `json:"client" description:"What that said it is; may be empty"`
	StartedAt     time.Time  `json:"started_at"`
	SeenAt        time.Time  `json:"seen_at" description:"When it was last started, renewed or confirmed: a session that is used is renewed every three hours"`
	ExpiresAt     time.Time  `json:"expires_at" description:"Unless it is used before"`
	RevokedAt     *time.Time `json:"revoked_at"`
	RevokedReason *string    `json:"revoked_reason"`
}

func showSession(s SeenSession) sessionJSON {
	state := tenants.Active
	if !s.Revocation.At.IsZero() {
		state = tenants.Revoked
	}
	return sessionJSON{
		ID: s.ID, Organization: s.Organization, Member: s.Member, Method: string(s.Method.OrPassword()), State: string(state),
		Address: s.Address, Client: s.Client, StartedAt: s.StartedAt.UTC(), SeenAt: s.SeenAt.UTC(), ExpiresAt: s.ExpiresAt.UTC(),
		RevokedAt: httpapi.TimeOrNull(s.Revocation.At), RevokedReason: api.Reason(s.Revocation),
	}
}

func placeOfSession(s SeenSession) query.Position {
	return query.Position{At: s.StartedAt, ID: s.ID}
}
