package people

import (
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/api"
	"github.com/weirlog/weir/tenants/internal/query"
)

type invitationJSON struct {
	ID           string     `json:"id"`
	Code         string     `json:"code,omitempty"` // in the answers to its creation and to a resend only
	Organization string     `json:"organization"`
	Email        string     `json:"email"`
	Role         string     `json:"role"`
	State        string     `json:"state"`
	InvitedBy    string     `json:"invited_by"`
	CreatedAt    time.Time  `json:"created_at"`
	ExpiresAt    time.Time  `json:"expires_at"`
	RevokedAt    *time.Time `json:"revoked_at"`
	AcceptedAt   *time.Time `json:"accepted_at"`
	Member       *string    `json:"member"`
}

func (a API) showInvitation(i tenants.Invitation) invitationJSON {
	shown := invitationJSON{
		ID: i.ID, Organization: i.Organization, Email: i.Email, Role: string(i.Role), State: string(i.State(a.Clock())),
		InvitedBy: i.By, CreatedAt: i.MadeAt.UTC(), ExpiresAt: i.ExpiresAt.UTC(), RevokedAt: api.Optional(i.RevokedAt),
		AcceptedAt: api.Optional(i.AcceptedAt),
	}
	if i.Member != "" {
		shown.Member = &i.Member
	}
	return shown
}

func placeOfInvitation(i tenants.Invitation) query.Position {
	return query.Position{At: i.MadeAt, ID: i.ID}
}

func (a API) createInvitation(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Organization string       `json:"organization"`
		Email        string       `json:"email"`
		Role         tenants.Role `json:"role"`
	}
	request, err := a.RequestWith(w, r, &body)
	if err != nil {
		return err
	}
	invitation, code, err := a.Invitations.Invite(r.Context(), request, NewInvitation(body))
	if err != nil {
		return api.ProblemOf(err, "organization", body.Organization)
	}
	a.writeInvitation(w, http.StatusCreated, invitation, code)
	return nil
}

// writeInvitation responds with an invitation
// and its code, which no other response has.
func (a API) writeInvitation(w http.ResponseWriter, status int, invitation tenants.Invitation, code tenants.Secret) {
	shown := a.showInvitation(invitation)
	shown.Code = code.Reveal()
	httpapi.WriteJSON(w, status, shown)
}

func (a API) resendInvitation(w http.ResponseWriter, r *http.Request) error {
	request, err := a.RequestOf(r)
	if err != nil {
		return err
	}
	id := chi.URLParam(r, "id")
	invitation, code, err := a.Invitations.Resend(r.Context(), request, id)
	if err != nil {
		return api.ProblemOf(err, "invitation", id)
	}
	a.writeInvitation(w, http.StatusOK, invitation, code)
	return nil
}
