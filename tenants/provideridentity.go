package tenants

import (
	"errors"
	"time"
)

// MaxSubject is the longest subject of an identity
// provider, in characters (OpenID Connect Core, 2).
const MaxSubject = 255

// A ProviderIdentity is a person at an identity provider
// (OpenID Connect). Unlike an e-mail address it is never
// given to another. Its zero value is nobody.
type ProviderIdentity struct {
	Issuer  string // address of the provider
	Subject string // its id of the person
}

// ErrOtherIdentity means that the member's former e-mail
// address belongs to another person at the identity provider.
var ErrOtherIdentity = errors.New("the member is somebody else at the identity provider")

// Identify is the command to record the provider's
// identity of a member's verified e-mail address.
type Identify struct {
	Identity ProviderIdentity
	At       time.Time
}

// MemberIdentified records a member's identity at an
// identity provider, in place of that at another one.
type MemberIdentified struct {
	Member  string    `json:"member"`
	Issuer  string    `json:"issuer"`
	Subject string    `json:"subject"`
	At      time.Time `json:"at"`
}

// EventName implements Event.
func (MemberIdentified) EventName() string { return "tenants.v1.member_identified" }

func (e MemberIdentified) audit() auditForm { return auditForm{"member.identified", e.At, &Member{}} }

// Publication implements Event.
func (MemberIdentified) Publication() Publication { return Unpublished }

// Identify decides the member's identity at a provider. It is
// idempotent. At one provider it never changes: ErrOtherIdentity.
func (m Member) Identify(cmd Identify) ([]Event, error) {
	switch {
	case !m.exists():
		return nil, ErrNotFound
	case m.Identity == cmd.Identity:
		return nil, nil
	case m.Identity.Issuer == cmd.Identity.Issuer:
		return nil, ErrOtherIdentity
	}
	return []Event{MemberIdentified{Member: m.ID, Issuer: cmd.Identity.Issuer, Subject: cmd.Identity.Subject, At: cmd.At}}, nil
}
