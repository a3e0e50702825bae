package signin

import (
	_ "embed"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/api"
	"github.com/weirlog/weir/tenants/internal/query"
)

// OpenAPI describes the routes of the room.
//
//go:embed openapi.json
var OpenAPI []byte

// An API serves sessions to service tokens.
type API struct {
	*api.Kit
	sessions *Sessions
}

// NewAPI returns the API of the sessions.
func NewAPI(kit *api.Kit, sessions *Sessions) API { return API{kit, sessions} }

// Mount adds the routes to router.
func (a API) Mount(admin chi.Router) {
	admin.Get("/v1/sessions", api.ListHandler("member", memberOf, a.sessions.List, showSession, placeOfSession))
	admin.Post("/v1/sessions/{id}/revoke", api.ChangeHandler(a.Kit, "session", api.ReasonOf, a.sessions.Revoke, showSession))
}

// memberOf is the member of a list's sessions.
func memberOf(r *http.Request) string { return r.URL.Query().Get("member") }

type sessionJSON struct {
	ID            string     `json:"id"`
	Organization  string     `json:"organization"`
	Member        string     `json:"member"`
	Method        string     `json:"method"` // how its member proved their identity
	State         string     `json:"state"`
	Address       string     `json:"address"` // of its last start, renewal or confirmation
	Client        string     `json:"client"`  // its User-Agent
	StartedAt     time.Time  `json:"started_at"`
	SeenAt        time.Time  `json:"seen_at"`
	ExpiresAt     time.Time  `json:"expires_at"` // unless renewed
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
		RevokedAt: api.Optional(s.Revocation.At), RevokedReason: api.Reason(s.Revocation),
	}
}

func placeOfSession(s SeenSession) query.Position {
	return query.Position{At: s.StartedAt, ID: s.ID}
}
