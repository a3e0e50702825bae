package tenants

import (
	"fmt"
	"time"

	"github.com/weirlog/weir/shared/contract/calendar"
)

// A session ends if it is not used for SessionIdleTimeout, at the latest
// SessionLifetime after its start. A use renews it only RenewAfter after
// the last renewal: so most uses write nothing, and an unused session
// ends up to RenewAfter before SessionIdleTimeout is over.
const (
	SessionIdleTimeout = 12 * time.Hour
	RenewAfter         = 3 * time.Hour
	SessionLifetime    = 7 * 24 * time.Hour
)

// SecretOverlap is how long a replaced secret still
// works, for requests under way and other tabs.
const SecretOverlap = time.Minute

// A SignInMethod is how a member proved their identity.
type SignInMethod string

// The methods.
const (
	ByPassword SignInMethod = "password"
	ByPasskey  SignInMethod = "passkey"
	ByOIDC     SignInMethod = "oidc" // by an identity provider
	ByCode     SignInMethod = "code" // of an invitation or a reset, where passwords are off
)

// OrPassword is the method, or ByPassword if empty, as in the first sessions.
func (m SignInMethod) OrPassword() SignInMethod {
	if m == "" {
		return ByPassword
	}
	return m
}

// A Session is a signed-in member's. Only digests of its secrets are stored.
type Session struct {
	ID              string // empty until it is started
	Organization    string
	Member          string
	Name            string       // the member's, when the session was started; empty for the first sessions
	Role            Role         // the member's
	Method          SignInMethod // empty for the first sessions, which were ByPassword
	Digest          SecretDigest // of its secret
	Replaced        Replaced     // the previous secret
	Dropped         SecretDigest // of a secret whose overlap the next replacement cut short; zero: none
	StartedAt       time.Time
	AuthenticatedAt time.Time // when the member last proved their identity
	RenewedAt       time.Time // or started
	ChangedAt       time.Time // of the last change before its end; zero: never
	ExpiresAt       time.Time // unless it is renewed
	EndsAt          time.Time // at the latest
	Revocation      Revocation
}

// Replaced is a session's previous secret. Its zero value is none.
type Replaced struct {
	Digest SecretDigest
	Until  time.Time
	Salt   string // derives the next secret from this one; empty: that can't be derived
}

// StartSession is the command to start a session
// of a member who proved their identity.
type StartSession struct {
	ID     string
	Member Member
	Method SignInMethod
	Digest SecretDigest
	At     time.Time
}

// RenewSession is the command to renew a session. The new secret is derived
// from the old one and Salt, so that a repeated request gets the same.
type RenewSession struct {
	Presented string // hash of the presented secret
	Digest    SecretDigest
	Salt      string
	At        time.Time
}

// ConfirmSession reports that the member proved their identity again.
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
	Digest       SecretDigest `json:"digest"`
	At           time.Time    `json:"at"`
	ExpiresAt    time.Time    `json:"expires_at"`
	EndsAt       *time.Time   `json:"ends_at,omitempty"` // absent: expires_at
	Method       SignInMethod `json:"method,omitempty"`  // absent: see Session
	Name         string       `json:"name,omitempty"`    // the member's
}

func (e SessionStarted) meta() eventMeta {
	return eventMeta{"tenants.v1.session_started", PublishedCredential, "session.started", e.At, &Session{}, kept}
}

// SessionRenewed extends a session, with another secret.
type SessionRenewed struct {
	Session       string       `json:"session"`
	Digest        SecretDigest `json:"digest"`
	Salt          string       `json:"salt"` // derives the secret from the previous one
	At            time.Time    `json:"at"`
	ExpiresAt     time.Time    `json:"expires_at"`
	ReplacedUntil time.Time    `json:"replaced_until"` // end of the previous secret
}

func (e SessionRenewed) meta() eventMeta {
	return eventMeta{"tenants.v1.session_renewed", PublishedCredential, "session.renewed", e.At, &Session{}, kept}
}

// SessionConfirmed records that the member proved their
// identity again. The session gets another secret.
type SessionConfirmed struct {
	Session       string       `json:"session"`
	Method        SignInMethod `json:"method"`
	Digest        SecretDigest `json:"digest"`
	At            time.Time    `json:"at"`
	ExpiresAt     time.Time    `json:"expires_at"`
	ReplacedUntil time.Time    `json:"replaced_until"` // end of the previous secret
}

func (e SessionConfirmed) meta() eventMeta {
	return eventMeta{"tenants.v1.session_confirmed", PublishedCredential, "session.confirmed", e.At, &Session{}, kept}
}

// SessionEnded ends a session early.
type SessionEnded struct {
	Session string    `json:"session"`
	Reason  string    `json:"reason"`
	At      time.Time `json:"at"`
}

func (e SessionEnded) meta() eventMeta {
	return eventMeta{"tenants.v1.session_ended", PublishedCredential, "session.ended", e.At, &Session{}, kept}
}

// SessionRoleChanged sets a session's role to its member's new one.
type SessionRoleChanged struct {
	Session string    `json:"session"`
	Role    Role      `json:"role"`
	At      time.Time `json:"at"`
}

func (e SessionRoleChanged) meta() eventMeta {
	return eventMeta{"tenants.v1.session_role_changed", PublishedCredential, "session.role_changed", e.At, &Session{}, kept}
}

// Start decides on a new session. Each sign-in
// starts its own: none is started twice.
func (s Session) Start(cmd StartSession) ([]Event, error) {
	if s.ID != "" {
		return nil, ErrReused
	}
	ends := cmd.At.Add(SessionLifetime)
	return []Event{SessionStarted{
		Session: cmd.ID, Organization: cmd.Member.Organization, Member: cmd.Member.ID, Role: cmd.Member.Role,
		Digest: cmd.Digest, At: cmd.At, ExpiresAt: cmd.At.Add(SessionIdleTimeout), EndsAt: &ends, Method: cmd.Method, Name: cmd.Member.Name,
	}}, nil
}

// Renew decides to extend the session; not if it was renewed
// recently, or the secret is not the newest: another tab was faster.
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

// Confirm decides that the member proved their identity again.
func (s Session) Confirm(cmd ConfirmSession) ([]Event, error) {
	if !s.active(cmd.At) {
		return nil, ErrNotFound
	}
	return []Event{SessionConfirmed{
		Session: s.ID, Method: cmd.Method, Digest: cmd.Digest, At: cmd.At, ExpiresAt: s.expiry(cmd.At),
		ReplacedUntil: s.replacedUntil(cmd.At),
	}}, nil
}

// End decides to end the session. It is idempotent: the first reason stays.
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

// ChangeRole decides to give the session the member's
// present role. An ended one stays as it is.
func (s Session) ChangeRole(role Role, at time.Time) ([]Event, error) {
	switch {
	case s.ID == "":
		return nil, ErrNotFound
	case s.Revocation.state() == Revoked, s.Role == role:
		return nil, nil
	}
	return []Event{SessionRoleChanged{Session: s.ID, Role: role, At: at}}, nil
}

// RenewAt is the time from which a use renews
// the session; zero if it can't be extended.
func (s Session) RenewAt() time.Time {
	if !s.ExpiresAt.Before(s.EndsAt) {
		return time.Time{}
	}
	return s.RenewedAt.Add(RenewAfter)
}

// active reports whether the session is in force.
func (s Session) active(at time.Time) bool {
	return s.ID != "" && s.Revocation.state() == Active && at.Before(s.ExpiresAt)
}

// expiry is when the session ends if at is its last use.
func (s Session) expiry(at time.Time) time.Time {
	return calendar.Earlier(at.Add(SessionIdleTimeout), s.EndsAt)
}

// replacedUntil is the end of a secret replaced at a time.
func (s Session) replacedUntil(at time.Time) time.Time {
	return calendar.Earlier(at.Add(SecretOverlap), s.ExpiresAt)
}

// Apply applies an event.
func (s *Session) Apply(event Event) {
	switch e := event.(type) {
	case SessionStarted:
		*s = Session{
			ID: e.Session, Organization: e.Organization, Member: e.Member, Role: e.Role, Digest: e.Digest, Method: e.Method, Name: e.Name,
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

// replace gives the session another secret. The previous
// one works for its overlap; the one before is dropped.
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

// DevicePrefix begins the secret by which a browser is recognized.
const DevicePrefix = "weirdev_"

// Bounds of devices: how long after its last sign-in one is recognized,
// how many a member has, and of how many members one browser is.
const (
	DeviceLifetime   = 90 * 24 * time.Hour
	MaxDevices       = 10
	MaxDeviceSecrets = 4
)

// A Device is a browser in which a member has signed in. It
// proves nothing: its attempts are only counted apart from
// others', which could use up the limit of the member's address.
type Device struct {
	Organization string // empty: unknown
	Member       string
	Hash         string // see SecretDigest
	Session      string // the last one started there
	UsedAt       time.Time
	ExpiresAt    time.Time
}

// Known reports whether the device is recognized.
func (d Device) Known() bool { return d.Hash != "" }

// A SignInResult is what a browser gets when a member signs in.
type SignInResult struct {
	Session Session
	Secret  Secret
	Devices []Secret // recognize the browser later, the new one first; stored nowhere
}
