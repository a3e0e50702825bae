package http

import (
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/postgres"
)

type sessionJSON struct {
	ID            string     `json:"id"`
	Organization  string     `json:"organization"`
	Member        string     `json:"member"`
	Method        string     `json:"method"` // how its member proved who they are
	State         string     `json:"state"`
	Address       string     `json:"address"` // from where it was last started, renewed or confirmed
	Client        string     `json:"client"`  // what that said it is
	StartedAt     time.Time  `json:"started_at"`
	SeenAt        time.Time  `json:"seen_at"`
	ExpiresAt     time.Time  `json:"expires_at"` // unless it is renewed
	RevokedAt     *time.Time `json:"revoked_at"`
	RevokedReason *string    `json:"revoked_reason"`
}

func showSession(s postgres.SeenSession) sessionJSON {
	state := tenants.Active
	if !s.Revocation.At.IsZero() {
		state = tenants.Revoked
	}
	return sessionJSON{
		ID: s.ID, Organization: s.Organization, Member: s.Member, Method: string(s.Method.OrPassword()), State: string(state),
		Address: s.Address, Client: s.Client, StartedAt: s.StartedAt.UTC(), SeenAt: s.SeenAt.UTC(), ExpiresAt: s.ExpiresAt.UTC(),
		RevokedAt: optional(s.Revocation.At), RevokedReason: reasonJSON(s.Revocation),
	}
}

func (a *API) listSessions(w http.ResponseWriter, r *http.Request) error {
	after, limit, err := pageOf(r, "member")
	if err != nil {
		return err
	}
	member := r.URL.Query().Get("member")
	if member == "" {
		return missing("member")
	}
	found, err := a.registrar.Sessions(r.Context(), callerOf(r), member, after, limit+1)
	if err != nil {
		return problemOf(err, "member", member)
	}
	listOf(w, found, limit, showSession, func(s postgres.SeenSession) postgres.Position {
		return postgres.Position{At: s.StartedAt, ID: s.ID}
	})
	return nil
}

func (a *API) revokeSession(w http.ResponseWriter, r *http.Request) error {
	request, err := a.requestOf(r)
	if err != nil {
		return err
	}
	reason, err := reasonOf(w, r)
	if err != nil {
		return err
	}
	id := chi.URLParam(r, "id")
	session, err := a.registrar.RevokeSession(r.Context(), request, id, reason)
	if err != nil {
		return problemOf(err, "session", id)
	}
	httpapi.WriteJSON(w, http.StatusOK, showSession(session))
	return nil
}
