package people

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapi"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/api"
	"github.com/weirlog/weir/tenants/internal/password"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// An API serves members and invitations to service tokens.
type API struct {
	*api.Kit
	Services
}

// NewAPI returns the API of services.
func NewAPI(kit *api.Kit, services Services) API { return API{kit, services} }

// Operations are the routes.
func (a API) Operations() []openapi.Operation {
	return slices.Concat(memberOperations(a), invitationOperations(a))
}

func memberOperations(a API) []openapi.Operation {
	return []openapi.Operation{
		{
			Route: "POST /v1/members", Handle: api.CreateHandler(a.Kit, a.createMember), ID: "createMember",
			Summary: "Add a member with a password to an organization (operators only; others invite)",
			Headers: newMemberHeaders{},
			Body:    openapi.Body{Type: newMemberBody{}},
			Answer:  openapi.Answer{Status: http.StatusCreated, Type: memberJSON{}},
			Problems: map[int]string{
				http.StatusNotFound: api.Unknown,
				http.StatusConflict: "Somebody already signs in with this e-mail address; or " + api.LimitReached,
			},
		},
		{
			Route: "GET /v1/members", ID: "listMembers",
			Handle:   api.ListHandler("organization", api.OrganizationOf, a.Members.List, showMember, placeOfMember),
			Summary:  "List the members of an organization, without those who were removed",
			Query:    api.OrganizationQuery{},
			Answer:   openapi.Answer{Type: httpapi.List[memberJSON]{}, Description: "A page, from old to new"},
			Problems: map[int]string{http.StatusNotFound: api.Unknown},
		},
		{
			Route: "PATCH /v1/members/{id}", ID: "changeMember",
			Handle: api.ChangeHandler(a.Kit, "member", roleOf, a.Members.ChangeRole, showMember),
			Summary: "Give a member another role. Their sessions have it at once. Owners are made and changed by operators and by owners " +
				"in the console only",
			Body:     openapi.Body{Type: roleBody{}},
			Answer:   openapi.Answer{Type: memberJSON{}},
			Problems: map[int]string{http.StatusConflict: "The member is the only owner of the organization"},
		},
		{
			Route: "POST /v1/members/{id}/reset-code", Handle: a.createResetCode, ID: "createResetCode",
			Summary: "A code with which a member sets another password, for those who may manage them. The earlier one is void",
			Answer:  openapi.Answer{Status: http.StatusCreated, Type: resetCodeJSON{}, Description: "The code, in this answer only: it works once, at /console/reset"},
		},
		{
			Route: "POST /v1/members/{id}/remove", ID: "removeMember",
			Handle:   api.ChangeHandler(a.Kit, "member", api.NoBody, api.WithoutBody(a.Members.Remove), showMember),
			Summary:  "Remove a member. Their sessions end at once. Again, it changes nothing",
			Answer:   openapi.Answer{Type: memberJSON{}},
			Problems: map[int]string{http.StatusConflict: "The member is the only owner of the organization"},
		},
	}
}

// problemOf adds this room's errors to api.ProblemOf.
func problemOf(err error, what, id string) error {
	switch {
	case errors.Is(err, password.ErrBusy):
		return httpapi.NewProblem(http.StatusTooManyRequests, "overloaded",
			"Too many passwords are waiting to be hashed. Send the request again.").RetryAfter(password.RetryAfter)
	case errors.Is(err, ErrEmailTaken):
		return httpapi.NewProblem(http.StatusConflict, httpapi.CodeConflict,
			"Somebody already signs in with this e-mail address. Use another one.")
	}
	return api.ProblemOf(err, what, id)
}

type memberJSON struct {
	ID           string     `json:"id" pattern:"^[A-Za-z0-9_-]+$" minLength:"1" maxLength:"64"`
	Organization string     `json:"organization" pattern:"^[A-Za-z0-9_-]+$" minLength:"1" maxLength:"64"`
	Email        string     `json:"email" description:"In lower case"`
	Name         string     `json:"name" minLength:"1" maxLength:"200" description:"Without control characters; white space around it is dropped"`
	Role         string     `json:"role" enum:"owner,admin,developer,viewer,billing"`
	Verified     bool       `json:"email_verified" description:"The identity provider has verified the address and knows the member. Weir sends no mail, so it verifies none itself"`
	CreatedAt    time.Time  `json:"created_at"`
	RemovedAt    *time.Time `json:"removed_at" description:"null: is a member"`
}

func showMember(m tenants.Member) memberJSON {
	return memberJSON{
		ID: m.ID, Organization: m.Organization, Email: m.Email, Name: m.Name, Role: string(m.Role),
		Verified: m.Identity != (tenants.ProviderIdentity{}), CreatedAt: m.AddedAt.UTC(), RemovedAt: httpapi.TimeOrNull(m.RemovedAt),
	}
}

func placeOfMember(m tenants.Member) query.Position {
	return query.Position{At: m.AddedAt, ID: m.ID}
}

type newMemberHeaders struct {
	Key string `header:"Idempotency-Key" minLength:"1" maxLength:"255" pattern:"^[ -~]+$" description:"The same key again with the same request creates nothing more, and leaves the first password as it is"`
}

type newMemberBody struct {
	Organization string           `json:"organization" required:"true" pattern:"^[A-Za-z0-9_-]+$" minLength:"1" maxLength:"64"`
	Email        string           `json:"email" required:"true" maxLength:"254" description:"Kept in lower case; nobody else in the installation has it"`
	Name         string           `json:"name" required:"true" minLength:"1" maxLength:"200" description:"Without control characters; white space around it is dropped"`
	Role         tenants.Role     `json:"role" required:"true" enum:"owner,admin,developer,viewer,billing"`
	Password     tenants.Password `json:"password" required:"true" minLength:"12" maxLength:"128" description:"Of any characters; only a slow hash is kept"`
}

func (a API) createMember(ctx context.Context, request unitofwork.Request, body newMemberBody) (memberJSON, error) {
	member, err := a.Members.Add(ctx, request, NewMember(body))
	return showMember(member), problemOf(err, "organization", body.Organization)
}

type roleBody struct {
	Role tenants.Role `json:"role" required:"true" enum:"owner,admin,developer,viewer,billing"`
}

// roleOf is the role in the body of a request to change a role.
func roleOf(w http.ResponseWriter, r *http.Request) (tenants.Role, error) {
	var body roleBody
	err := httpapi.ReadJSON(w, r, &body)
	return body.Role, err
}

type resetCodeJSON struct {
	Member    string    `json:"member"`
	Code      string    `json:"code"`
	ExpiresAt time.Time `json:"expires_at"`
}

// createResetCode responds with a code that resets
// the member's password; no other response has it.
func (a API) createResetCode(w http.ResponseWriter, r *http.Request) error {
	request, err := a.RequestOf(r)
	if err != nil {
		return err
	}
	id := chi.URLParam(r, "id")
	member, code, err := a.Codes.IssueReset(r.Context(), request, id)
	if err != nil {
		return api.ProblemOf(err, "member", id)
	}
	httpapi.WriteJSON(w, http.StatusCreated, resetCodeJSON{member.ID, code.Reveal(), member.Reset.ExpiresAt.UTC()})
	return nil
}

func invitationOperations(a API) []openapi.Operation {
	return []openapi.Operation{
		{
			Route: "POST /v1/invitations", Handle: api.CreateHandler(a.Kit, a.createInvitation), ID: "createInvitation",
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
		InvitedBy: i.By, CreatedAt: i.MadeAt.UTC(), ExpiresAt: i.ExpiresAt.UTC(), RevokedAt: httpapi.TimeOrNull(i.RevokedAt),
		AcceptedAt: httpapi.TimeOrNull(i.AcceptedAt),
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

func (a API) createInvitation(ctx context.Context, request unitofwork.Request, body newInvitationBody) (invitationJSON, error) {
	invitation, code, err := a.Invitations.Invite(ctx, request, NewInvitation(body))
	return a.showIssued(invitation, code), api.ProblemOf(err, "organization", body.Organization)
}

// showIssued is an invitation with its code, which no other response has.
func (a API) showIssued(invitation tenants.Invitation, code tenants.Secret) invitationJSON {
	shown := a.showInvitation(invitation)
	shown.Code = code.Reveal()
	return shown
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
	httpapi.WriteJSON(w, http.StatusOK, a.showIssued(invitation, code))
	return nil
}
