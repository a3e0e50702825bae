package tenants

import (
	"fmt"
	"time"
)

// SessionLasts is how long a session lasts, whatever is done with it.
const SessionLasts = 12 * time.Hour

// A Session is what a member has between signing in and signing out. Its secret is not kept.
type Session struct {
	ID           string // empty until it is started
	Organization string
	Member       string
	Role         Role // the member's
	Imprint      Imprint
	StartedAt    time.Time
	ChangedAt    time.Time // when it last was, before it ended; zero: never
	ExpiresAt    time.Time
	Revocation   Revocation
}

// StartSession lets a member in whose password was right.
type StartSession struct {
	ID      string
	Member  Member
	Imprint Imprint
	At      time.Time
}

// SessionStarted starts a session.
type SessionStarted struct {
	Session      string    `json:"session"`
	Organization string    `json:"organization"`
	Member       string    `json:"member"`
	Role         Role      `json:"role"`
	Imprint      Imprint   `json:"imprint"`
	At           time.Time `json:"at"`
	ExpiresAt    time.Time `json:"expires_at"`
}

// SessionEnded ends a session before its time.
type SessionEnded struct {
	Session string    `json:"session"`
	Reason  string    `json:"reason"`
	At      time.Time `json:"at"`
}

// SessionRoleChanged lets a session go on in another role: its member got it.
type SessionRoleChanged struct {
	Session string    `json:"session"`
	Role    Role      `json:"role"`
	At      time.Time `json:"at"`
}

// Start decides on a new session. Each sign-in starts one of its own: a session can't be started twice.
func (s Session) Start(cmd StartSession) ([]Event, error) {
	if s.ID != "" {
		return nil, ErrReused
	}
	return []Event{SessionStarted{
		Session: cmd.ID, Organization: cmd.Member.Organization, Member: cmd.Member.ID, Role: cmd.Member.Role,
		Imprint: cmd.Imprint, At: cmd.At, ExpiresAt: cmd.At.Add(SessionLasts),
	}}, nil
}

// End decides to end the session. Ending it again decides nothing: the first reason stands.
func (s Session) End(cmd Revoke) ([]Event, error) {
	if err := cmd.Check(); err != nil {
		return nil, err
	}
	switch {
	case s.ID == "":
		return nil, ErrNotFound
	case s.Revocation.state() == Revoked:
		return nil, nil
	}
	return []Event{SessionEnded{Session: s.ID, Reason: cmd.reason(), At: cmd.At}}, nil
}

// ChangeRole decides to let the session go on in the role that its member has now. One that has ended has no role any
// more: nothing follows.
func (s Session) ChangeRole(role Role, at time.Time) ([]Event, error) {
	switch {
	case s.ID == "":
		return nil, ErrNotFound
	case s.Revocation.state() == Revoked, s.Role == role:
		return nil, nil
	}
	return []Event{SessionRoleChanged{Session: s.ID, Role: role, At: at}}, nil
}

// Apply brings the session forward.
func (s *Session) Apply(event Event) {
	switch e := event.(type) {
	case SessionStarted:
		*s = Session{
			ID: e.Session, Organization: e.Organization, Member: e.Member, Role: e.Role, Imprint: e.Imprint,
			StartedAt: e.At, ExpiresAt: e.ExpiresAt,
		}
	case SessionRoleChanged:
		s.Role, s.ChangedAt = e.Role, e.At
	case SessionEnded:
		s.Revocation = Revocation{At: e.At, Reason: e.Reason}
	default:
		panic(fmt.Sprintf("BUG: a session does not know %T", event))
	}
}
