package tenants

import (
	"fmt"
	"time"

	"github.com/weirlog/weir/shared/contract/calendar"
)

// A session ends when it was not used for SessionIdles, at the latest
// SessionLasts after its start. A use renews it only RenewAfter after the last
// renewal: so most uses write nothing, and an unused session ends
// SessionIdles-RenewAfter to SessionIdles later.
const (
	SessionIdleTimeout = 12 * time.Hour
	RenewAfter         = 3 * time.Hour
	SessionLifetime    = 7 * 24 * time.Hour
)

// SecretOverlap is how long a replaced secret still works, for
// requests and tabs that are on their way.
const SecretOverlap = time.Minute

// A SignInMethod is how a member proved who they are.
type SignInMethod string

// The methods.
const (
	ByPassword SignInMethod = "password"
	ByPasskey  SignInMethod = "passkey"
	ByOIDC     SignInMethod = "oidc" // by an identity provider
	ByCode     SignInMethod = "code" // of an invitation or a reset, where passwords are switched off
)

// OrPassword is the method, ByPassword where it is empty: the
// first sessions lack it.
func (m SignInMethod) OrPassword() SignInMethod {
	if m == "" {
		return ByPassword
	}
	return m
}

// A Session is what a member has between signing in and signing
// out. Its secrets are not kept.
type Session struct {
	ID              string // empty until it is started
	Organization    string
	Member          string
	Role            Role         // the member's
	Method          SignInMethod // empty for the first sessions, which were ByPassword
	Digest          SecretDigest // of its secret
	Replaced        Replaced
	Dropped         SecretDigest // of the secret that the last replacement ended before its overlap was over; zero: none
	StartedAt       time.Time
	AuthenticatedAt time.Time // when the member last proved who they are
	RenewedAt       time.Time // or started
	ChangedAt       time.Time // when it last was, before it ended; zero: never
	ExpiresAt       time.Time // unless it is renewed
	EndsAt          time.Time // at the latest
	Revocation      Revocation
}

// Replaced is the secret that a session had before. Its zero value is none.
type Replaced struct {
	Digest SecretDigest
	Until  time.Time // when it ends
	Salt   string    // makes the secret that came after it; empty where that can't be made from it
}

// StartSession lets a member in who has proved who they are.
type StartSession struct {
	ID     string
	Member Member
	Method SignInMethod
	Digest SecretDigest
	At     time.Time
}

// RenewSession keeps a session from idling. The new secret is made from the old
// one and Salt, so that a repeated request gets the same.
type RenewSession struct {
	Presented string // hash of the secret that asks
	Digest    SecretDigest
	Salt      string
	At        time.Time
}

// ConfirmSession reports that the member has proved anew who they are.
type ConfirmSession struct {
	Method SignInMethod
	Digest SecretDigest
	At     time.Time
}

// SessionStarted starts a session.
type SessionStarted struct {
	Session      string       `json:"session"`
	Organization string       `json:"organization"`
	Member       string       `json:"member"`
	Role         Role         `json:"role"`
	Digest       SecretDigest `json:"imprint"`
	At           time.Time    `json:"at"`
	ExpiresAt    time.Time    `json:"expires_at"`
	EndsAt       *time.Time   `json:"ends_at,omitempty"` // absent: expires_at
	Method       SignInMethod `json:"method,omitempty"`  // absent: see Session
}

// EventName implements Event.
func (SessionStarted) EventName() string { return "tenants.v1.session_started" }

func (e SessionStarted) audit() auditForm { return auditForm{"session.started", e.At, &Session{}} }

// Publication implements Event.
func (SessionStarted) Publication() Publication { return PublishedCredential }

// SessionRenewed lets a session go on, with another secret.
type SessionRenewed struct {
	Session       string       `json:"session"`
	Digest        SecretDigest `json:"imprint"`
	Salt          string       `json:"salt"` // makes the secret from the one before
	At            time.Time    `json:"at"`
	ExpiresAt     time.Time    `json:"expires_at"`
	ReplacedUntil time.Time    `json:"replaced_until"` // when the secret before ends
}

// EventName implements Event.
func (SessionRenewed) EventName() string { return "tenants.v1.session_renewed" }

func (e SessionRenewed) audit() auditForm { return auditForm{"session.renewed", e.At, &Session{}} }

// Publication implements Event.
func (SessionRenewed) Publication() Publication { return PublishedCredential }

// SessionConfirmed records that the member has proved their identity
// again. The session gets another secret.
type SessionConfirmed struct {
	Session       string       `json:"session"`
	Method        SignInMethod `json:"method"`
	Digest        SecretDigest `json:"imprint"`
	At            time.Time    `json:"at"`
	ExpiresAt     time.Time    `json:"expires_at"`
	ReplacedUntil time.Time    `json:"replaced_until"` // when the secret before ends
}

// EventName implements Event.
func (SessionConfirmed) EventName() string { return "tenants.v1.session_confirmed" }

func (e SessionConfirmed) audit() auditForm { return auditForm{"session.confirmed", e.At, &Session{}} }

// Publication implements Event.
func (SessionConfirmed) Publication() Publication { return PublishedCredential }

// SessionEnded ends a session before its time.
type SessionEnded struct {
	Session string    `json:"session"`
	Reason  string    `json:"reason"`
	At      time.Time `json:"at"`
}

// EventName implements Event.
func (SessionEnded) EventName() string { return "tenants.v1.session_ended" }

func (e SessionEnded) audit() auditForm { return auditForm{"session.ended", e.At, &Session{}} }

// Publication implements Event.
func (SessionEnded) Publication() Publication { return PublishedCredential }

// SessionRoleChanged lets a session go on in another role: its member got it.
type SessionRoleChanged struct {
	Session string    `json:"session"`
	Role    Role      `json:"role"`
	At      time.Time `json:"at"`
}

// EventName implements Event.
func (SessionRoleChanged) EventName() string { return "tenants.v1.session_role_changed" }

func (e SessionRoleChanged) audit() auditForm {
	return auditForm{"session.role_changed", e.At, &Session{}}
}

// Publication implements Event.
func (SessionRoleChanged) Publication() Publication { return PublishedCredential }

// Start decides on a new session. Each sign-in starts one of its
// own: a session can't be started twice.
func (s Session) Start(cmd StartSession) ([]Event, error) {
	if s.ID != "" {
		return nil, ErrReused
	}
	ends := cmd.At.Add(SessionLifetime)
	return []Event{SessionStarted{
		Session: cmd.ID, Organization: cmd.Member.Organization, Member: cmd.Member.ID, Role: cmd.Member.Role,
		Digest: cmd.Digest, At: cmd.At, ExpiresAt: cmd.At.Add(SessionIdleTimeout), EndsAt: &ends, Method: cmd.Method,
	}}, nil
}

// Renew decides to extend the session; nothing where it was renewed not long
// ago, or the secret is not the newest: another tab was faster.
func (s Session) Renew(cmd RenewSession) ([]Event, error) {
	if !s.active(cmd.At) {
		return nil, ErrNotFound
	}
	due := s.RenewAt()
	if cmd.Presented != s.Digest.Hash || due.IsZero() || cmd.At.Before(due) {
		return nil, nil
	}
	return []Event{SessionRenewed{
		Session: s.ID, Digest: cmd.Digest, Salt: cmd.Salt, At: cmd.At, ExpiresAt: s.expiry(cmd.At),
		ReplacedUntil: s.replacedUntil(cmd.At),
	}}, nil
}

// Confirm decides that the member has proved anew who they are.
func (s Session) Confirm(cmd ConfirmSession) ([]Event, error) {
	if !s.active(cmd.At) {
		return nil, ErrNotFound
	}
	return []Event{SessionConfirmed{
		Session: s.ID, Method: cmd.Method, Digest: cmd.Digest, At: cmd.At, ExpiresAt: s.expiry(cmd.At),
		ReplacedUntil: s.replacedUntil(cmd.At),
	}}, nil
}

// End decides to end the session. Again, it decides nothing: the
// first reason stays.
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

// ChangeRole decides to give the session the member's present
// role. An ended one stays as it is.
func (s Session) ChangeRole(role Role, at time.Time) ([]Event, error) {
	switch {
	case s.ID == "":
		return nil, ErrNotFound
	case s.Revocation.state() == Revoked, s.Role == role:
		return nil, nil
	}
	return []Event{SessionRoleChanged{Session: s.ID, Role: role, At: at}}, nil
}

// RenewAt is from when a use renews the session; zero where it can't last longer.
func (s Session) RenewAt() time.Time {
	if !s.ExpiresAt.Before(s.EndsAt) {
		return time.Time{}
	}
	return s.RenewedAt.Add(RenewAfter)
}

// works reports whether the session is in force.
func (s Session) active(at time.Time) bool {
	return s.ID != "" && s.Revocation.state() == Active && at.Before(s.ExpiresAt)
}

// expiry is when the session ends if it is not used after at.
func (s Session) expiry(at time.Time) time.Time {
	return calendar.Earlier(at.Add(SessionIdleTimeout), s.EndsAt)
}

// replacedUntil is when a secret ends that is replaced.
func (s Session) replacedUntil(at time.Time) time.Time {
	return calendar.Earlier(at.Add(SecretOverlap), s.ExpiresAt)
}

// Apply brings the session forward.
func (s *Session) Apply(event Event) {
	switch e := event.(type) {
	case SessionStarted:
		*s = Session{
			ID: e.Session, Organization: e.Organization, Member: e.Member, Role: e.Role, Digest: e.Digest, Method: e.Method,
			StartedAt: e.At, AuthenticatedAt: e.At, RenewedAt: e.At, ExpiresAt: e.ExpiresAt, EndsAt: e.ExpiresAt,
		}
		if e.EndsAt != nil {
			s.EndsAt = *e.EndsAt
		}
	case SessionRenewed:
		s.replace(e.Digest, e.Salt, e.At, e.ReplacedUntil)
		s.RenewedAt, s.ExpiresAt = e.At, e.ExpiresAt
	case SessionConfirmed:
		s.replace(e.Digest, "", e.At, e.ReplacedUntil)
		s.AuthenticatedAt, s.RenewedAt, s.ExpiresAt = e.At, e.At, e.ExpiresAt
	case SessionRoleChanged:
		s.Role, s.ChangedAt = e.Role, e.At
	case SessionEnded:
		s.Revocation = Revocation{At: e.At, Reason: e.Reason}
	default:
		panic(fmt.Sprintf("BUG: a session does not know %T", event))
	}
}

// replace gives the session another secret. The previous one works a
// moment longer; the one before no more.
func (s *Session) replace(digest SecretDigest, salt string, at, until time.Time) {
	s.Dropped = SecretDigest{}
	if at.Before(s.Replaced.Until) {
		s.Dropped = s.Replaced.Digest
	}
	s.Replaced = Replaced{Digest: s.Digest, Until: until, Salt: salt}
	s.Digest, s.ChangedAt = digest, at
}

func (s *Session) audited() (Target, Fields) {
	return Target{"session", s.ID, ""}, Fields{
		"member": s.Member, "role": string(s.Role), "method": string(s.Method), "expires_at": s.ExpiresAt,
		"state": string(s.Revocation.state()), "reason": s.Revocation.Reason,
	}
}
