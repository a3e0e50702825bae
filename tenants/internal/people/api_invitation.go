package people

import (
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/api"
	"github.com/weirlog/weir/tenants/internal/query"
)

func invitationOperations(a API) []openapi.Operation {
	return []openapi.Operation{
		{
			Route: "POST /v1/invitations", Handle: a.createInvitation, ID: "createInvitation",
			Summary: "Invite somebody by a code that is shown once, works once and expires after 7 days. Owners are invited by operators " +
				"and by owners in the console only",
			Headers: newInvitationHeaders{},
			Body:    openapi.Body{Type: newInvitationBody{}},
			Answer:  openapi.Answer{Status: http.StatusCreated, Type: invitationJSON{}},
			Problems: map[int]string{
				http.StatusNotFound: api.Unknown,
				http.StatusConflict: "The Idempotency-Key came before, and the code was shown then; or " + api.LimitReached,
			},
		},
		{
			Route: "GET /v1/invitations", ID: "listInvitations",
			Handle:   api.ListHandler("organization", api.OrganizationOf, a.Invitations.List, a.showInvitation, placeOfInvitation),
			Summary:  "List the invitations of an organization, whatever became of them",
			Query:    api.OrganizationQuery{},
			Answer:   openapi.Answer{Type: httpapi.List[invitationJSON]{}, Description: "A page, from old to new"},
			Problems: map[int]string{http.StatusNotFound: api.Unknown},
		},
		{
			Route: "POST /v1/invitations/{id}/resend", Handle: a.resendInvitation, ID: "resendInvitation",
			Summary:  "Give an invitation another code and 7 days again. The earlier code is void",
			Answer:   openapi.Answer{Type: invitationJSON{}},
			Problems: map[int]string{http.StatusConflict: "The invitation was accepted or revoked before"},
		},
		{
			Route: "POST /v1/invitations/{id}/revoke", ID: "revokeInvitation",
			Handle:   api.ChangeHandler(a.Kit, "invitation", api.NoBody, api.WithoutBody(a.Invitations.Revoke), a.showInvitation),
			Summary:  "Take an invitation back. Again, it changes nothing",
			Answer:   openapi.Answer{Type: invitationJSON{}},
			Problems: map[int]string{http.StatusConflict: "The invitation was accepted before"},
		},
	}
}

type invitationJSON struct {
	ID           string     `json:"id" pattern:"^[A-Za-z0-9_-]+$" minLength:"1" maxLength:"64"`
	Code         string     `json:"code,omitempty" pattern:"^weirinv_[0-9a-f]{48}$" description:"In the answers to its creation and to a resend only: the invited person opens /console/join#CODE"`
	Organization string     `json:"organization" pattern:"^[A-Za-z0-9_-]+$" minLength:"1" maxLength:"64"`
	Email        string     `json:"email" description:"In lower case"`
	Role         string     `json:"role" enum:"owner,admin,developer,viewer,billing"`
	State        string     `json:"state" enum:"open,expired,revoked,accepted"`
	InvitedBy    string     `json:"invited_by" description:"The id of a member or service token"`
	CreatedAt    time.Time  `json:"created_at"`
	ExpiresAt    time.Time  `json:"expires_at"`
	RevokedAt    *time.Time `json:"revoked_at"`
	AcceptedAt   *time.Time `json:"accepted_at"`
	Member       *string    `json:"member" description:"The id of who has joined by it"`
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

type newInvitationHeaders struct {
	Key string `header:"Idempotency-Key" minLength:"1" maxLength:"255" pattern:"^[ -~]+$" description:"The same key again with the same request creates nothing more, and is answered with 409"`
}

type newInvitationBody struct {
	Organization string       `json:"organization" required:"true" pattern:"^[A-Za-z0-9_-]+$" minLength:"1" maxLength:"64"`
	Email        string       `json:"email" required:"true" maxLength:"254" description:"The invited person has to type it"`
	Role         tenants.Role `json:"role" required:"true" enum:"owner,admin,developer,viewer,billing"`
}

func (a API) createInvitation(w http.ResponseWriter, r *http.Request) error {
	var body newInvitationBody
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
