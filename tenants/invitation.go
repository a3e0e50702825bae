package tenants

import (
	"errors"
	"fmt"
	"time"
)

// An Invitation lets one person join an organization in one role.
type Invitation struct {
	ID           string // empty until created
	Organization string
	Email        string // of the invited; see NormalEmail
	Role         Role
	By           string // who created it or sent it again: a member or a service token
	CodeHash     string // of the valid code; see SecretDigest
	MadeAt       time.Time
	ExpiresAt    time.Time
	RevokedAt    time.Time // zero: not revoked
	AcceptedAt   time.Time // zero: not accepted
	Member       string    // who joined by it

	made InvitationMade
}

// States of an invitation beside Expired and Revoked. Only an
// open one can be accepted; an expired one can be sent again.
const (
	Open     State = "open"
	Accepted State = "accepted"
)

// ErrSettled means that an invitation was accepted or
// revoked: it can be neither sent again nor revoked.
var ErrSettled = errors.New("the invitation was accepted or revoked")

// Invite is the command to invite a person.
type Invite struct {
	ID           string
	Organization string
	Email        string
	Role         Role
	By           string // the caller
	ByRole       Role
	Digest       SecretDigest // of the code
	At           time.Time
}

// InvitationMade invites a person.
type InvitationMade struct {
	Invitation   string       `json:"invitation"`
	Organization string       `json:"organization"`
	Email        string       `json:"email"`
	Role         Role         `json:"role"`
	By           string       `json:"by"`
	Digest       SecretDigest `json:"digest"`
	At           time.Time    `json:"at"`
	ExpiresAt    time.Time    `json:"expires_at"`
}

func (e InvitationMade) meta() eventMeta {
	return eventMeta{"tenants.v1.invitation_made", Unpublished, "invitation.made", e.At, &Invitation{}, kept}
}

// InvitationResent gives an invitation a new code and
// its full time again. The previous code is void.
type InvitationResent struct {
	Invitation string       `json:"invitation"`
	Digest     SecretDigest `json:"digest"`
	At         time.Time    `json:"at"`
	ExpiresAt  time.Time    `json:"expires_at"`
	By         string       `json:"by,omitempty"` // who has the new code; absent: the invitation's creator
}

func (e InvitationResent) meta() eventMeta {
	return eventMeta{"tenants.v1.invitation_resent", Unpublished, "invitation.resent", e.At, &Invitation{}, kept}
}

// InvitationRevoked ends an open invitation.
type InvitationRevoked struct {
	Invitation string    `json:"invitation"`
	At         time.Time `json:"at"`
}

func (e InvitationRevoked) meta() eventMeta {
	return eventMeta{"tenants.v1.invitation_revoked", Unpublished, "invitation.revoked", e.At, &Invitation{}, kept}
}

// InvitationAccepted records who joined by an invitation.
type InvitationAccepted struct {
	Invitation string    `json:"invitation"`
	Member     string    `json:"member"`
	At         time.Time `json:"at"`
}

func (e InvitationAccepted) meta() eventMeta {
	return eventMeta{"tenants.v1.invitation_accepted", Unpublished, "invitation.accepted", e.At, &Invitation{}, kept}
}

// Check returns Invalid with every fault of the command, or nil.
func (c Invite) Check() error {
	faults := append(checkGiven("organization", c.Organization), checkEmail("email", c.Email)...)
	return append(faults, checkRole(c.Role)...).orNil()
}

// Make decides on a new invitation. A repeated request fails with
// ErrShownOnce, another one with the same id with ErrReused.
func (i Invitation) Make(cmd Invite) ([]Event, error) {
	if err := cmd.Check(); err != nil {
		return nil, err
	}
	made := InvitationMade{
		Invitation: cmd.ID, Organization: cmd.Organization, Email: NormalEmail(cmd.Email), Role: cmd.Role, By: cmd.By,
		Digest: cmd.Digest, At: cmd.At, ExpiresAt: cmd.At.Add(InvitationLifetime),
	}
	switch {
	case !cmd.ByRole.MayInvite(cmd.Role):
		return nil, ErrForbidden
	case i.ID == "":
		return []Event{made}, nil
	case i.made.Email == made.Email && i.made.Role == made.Role:
		return nil, ErrShownOnce
	}
	return nil, ErrReused
}

// Resend is the command to give an invitation a new code.
type Resend struct {
	By     string // the caller
	ByRole Role
	Digest SecretDigest
	At     time.Time
}

// Resend decides to give the invitation a new code. The
// role must be one that may invite to the invitation's.
func (i Invitation) Resend(cmd Resend) ([]Event, error) {
	if err := i.unsettled(cmd.ByRole); err != nil {
		return nil, err
	}
	return []Event{InvitationResent{
		Invitation: i.ID, Digest: cmd.Digest, At: cmd.At, ExpiresAt: cmd.At.Add(InvitationLifetime), By: cmd.By,
	}}, nil
}

// Revoke decides to end the invitation. It is idempotent.
// The role must be one that may invite to the invitation's.
func (i Invitation) Revoke(by Role, at time.Time) ([]Event, error) {
	err := i.unsettled(by)
	switch {
	case errors.Is(err, ErrSettled) && i.AcceptedAt.IsZero():
		return nil, nil
	case err != nil:
		return nil, err
	}
	return []Event{InvitationRevoked{Invitation: i.ID, At: at}}, nil
}

func (i Invitation) unsettled(by Role) error {
	switch {
	case i.ID == "":
		return ErrNotFound
	case !by.MayInvite(i.Role):
		return ErrForbidden
	case !i.AcceptedAt.IsZero() || !i.RevokedAt.IsZero():
		return ErrSettled
	}
	return nil
}

// Accept is the command to join by an invitation.
type Accept struct {
	Code   string // hash of the shown code; see SecretDigest
	Email  string // as typed
	Member string // who joins
	ByRole Role   // present role of the code's issuer
	At     time.Time
}

// Accept decides that the holder of the code, who also
// names the address, joins. The code's issuer may have
// kept it: it is void once they may not invite any more.
func (i Invitation) Accept(cmd Accept) ([]Event, error) {
	if err := i.Admits(cmd.Code, cmd.At); err != nil {
		return nil, err
	}
	if NormalEmail(cmd.Email) != i.Email {
		return nil, Invalid{{"email", fmt.Sprintf("email is %q, which is not the address that was invited.", cmd.Email),
			"Use the address that you were invited with, or ask for an invitation to this one."}}
	}
	if !cmd.ByRole.MayInvite(i.Role) {
		return nil, ErrCodeRevoked
	}
	return []Event{InvitationAccepted{Invitation: i.ID, Member: cmd.Member, At: cmd.At}}, nil
}

// Admits is nil if a code with a hash can
// be accepted at a time; else see ErrCode.
func (i Invitation) Admits(code string, at time.Time) error {
	return issuedCode{i.CodeHash, i.AcceptedAt, i.RevokedAt, i.ExpiresAt}.admits(code, at)
}

// State is the invitation's state at now.
func (i Invitation) State(now time.Time) State {
	switch {
	case !i.AcceptedAt.IsZero():
		return Accepted
	case !i.RevokedAt.IsZero():
		return Revoked
	case !now.Before(i.ExpiresAt):
		return Expired
	}
	return Open
}

// Apply applies an event.
func (i *Invitation) Apply(event Event) {
	switch e := event.(type) {
	case InvitationMade:
		*i = Invitation{
			ID: e.Invitation, Organization: e.Organization, Email: e.Email, Role: e.Role, By: e.By,
			CodeHash: e.Digest.Hash, MadeAt: e.At, ExpiresAt: e.ExpiresAt, made: e,
		}
	case InvitationResent:
		i.CodeHash, i.ExpiresAt = e.Digest.Hash, e.ExpiresAt
		if e.By != "" {
			i.By = e.By
		}
	case InvitationRevoked:
		i.RevokedAt = e.At
	case InvitationAccepted:
		i.AcceptedAt, i.Member = e.At, e.Member
	default:
		panic(fmt.Sprintf("BUG: an invitation does not know %T", event))
	}
}

func (i *Invitation) audited() (Target, Fields) {
	return Target{"invitation", i.ID, i.Email}, Fields{
		"email": i.Email, "role": string(i.Role), "by": i.By, "expires_at": i.ExpiresAt, "revoked_at": i.RevokedAt,
		"accepted_at": i.AcceptedAt, "member": i.Member,
	}
}
