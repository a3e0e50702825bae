package tenants

import (
	"errors"
	"fmt"
	"time"
)

// MaxPasskeys is how many passkeys a member can have.
const MaxPasskeys = 20

// ErrTooMany means that a member has MaxPasskeys.
var ErrTooMany = errors.New("the member has as many passkeys as allowed")

// A Passkey is a key pair (WebAuthn) by which a
// member signs in. Only its public half is stored.
type Passkey struct {
	ID           string // empty until it is registered
	Organization string
	Member       string
	Name         string // given by the member
	Credential   PublicCredential
	RegisteredAt time.Time
	UsedAt       time.Time // zero: never
	SuspectedAt  time.Time // when a copy of it seemed to exist; zero: never
	Revocation   Revocation
}

// A PublicCredential is what an authenticator reports of a key pair.
type PublicCredential struct {
	ID             []byte   `json:"id"`         // the authenticator's id of it; unique
	PublicKey      []byte   `json:"public_key"` // in COSE form
	Counter        uint32   `json:"counter"`    // of its uses; always 0 if the authenticator does not count
	Transports     []string `json:"transports,omitempty"`
	Model          []byte   `json:"model,omitempty"` // of the authenticator (AAGUID)
	BackupEligible bool     `json:"backup_eligible,omitempty"`
	BackedUp       bool     `json:"backed_up,omitempty"` // is on other devices too, or can be restored
}

// RegisterPasskey is the command to register a
// passkey of a member, who has Existing ones.
type RegisterPasskey struct {
	ID         string
	Member     Member
	Name       string
	Credential PublicCredential
	Existing   int
	At         time.Time
}

// UsePasskey reports that the member has proved to have the private half.
type UsePasskey struct {
	Counter  uint32
	BackedUp bool
	At       time.Time
}

// PasskeyRegistered starts a passkey.
type PasskeyRegistered struct {
	Passkey      string           `json:"passkey"`
	Organization string           `json:"organization"`
	Member       string           `json:"member"`
	Name         string           `json:"name"`
	Credential   PublicCredential `json:"credential"`
	At           time.Time        `json:"at"`
}

func (e PasskeyRegistered) meta() eventMeta {
	return eventMeta{"tenants.v1.passkey_registered", Unpublished, "passkey.registered", e.At, &Passkey{}, kept}
}

// PasskeyUsed records a proof of identity by a passkey.
type PasskeyUsed struct {
	Passkey  string    `json:"passkey"`
	Counter  uint32    `json:"counter"`
	BackedUp bool      `json:"backed_up,omitempty"`
	At       time.Time `json:"at"`
}

func (e PasskeyUsed) meta() eventMeta {
	return eventMeta{"tenants.v1.passkey_used", Unpublished, "passkey.used", e.At, &Passkey{}, byNext}
}

// PasskeySuspected means that a passkey was used with
// an old count: a copy may exist. It no longer works.
type PasskeySuspected struct {
	Passkey string    `json:"passkey"`
	Counter uint32    `json:"counter"`
	At      time.Time `json:"at"`
}

func (e PasskeySuspected) meta() eventMeta {
	return eventMeta{"tenants.v1.passkey_suspected", Unpublished, "passkey.suspected", e.At, &Passkey{}, kept}
}

// PasskeyRemoved ends a passkey.
type PasskeyRemoved struct {
	Passkey string    `json:"passkey"`
	At      time.Time `json:"at"`
}

func (e PasskeyRemoved) meta() eventMeta {
	return eventMeta{"tenants.v1.passkey_removed", Unpublished, "passkey.removed", e.At, &Passkey{}, kept}
}

// Check returns Invalid with every fault of the command, or nil.
func (c RegisterPasskey) Check() error {
	return checkName(c.Name).orNil()
}

// Register decides on a new passkey.
func (p Passkey) Register(cmd RegisterPasskey) ([]Event, error) {
	if err := cmd.Check(); err != nil {
		return nil, err
	}
	switch {
	case p.ID != "":
		return nil, ErrReused
	case cmd.Existing >= MaxPasskeys:
		return nil, fmt.Errorf("register a passkey beside %d others: %w", cmd.Existing, ErrTooMany)
	}
	return []Event{PasskeyRegistered{
		Passkey: cmd.ID, Organization: cmd.Member.Organization, Member: cmd.Member.ID, Name: CleanName(cmd.Name),
		Credential: cmd.Credential, At: cmd.At,
	}}, nil
}

// Use decides whether the passkey admits its member: PasskeyUsed
// admits. A count that does not grow reveals a copy; which one
// is the member's is unknown, so neither is admitted.
func (p Passkey) Use(cmd UsePasskey) ([]Event, error) {
	counts := cmd.Counter != 0 || p.Credential.Counter != 0
	switch {
	case p.ID == "" || p.Revocation.state() == Revoked || !p.SuspectedAt.IsZero():
		return nil, ErrNotFound
	case counts && cmd.Counter <= p.Credential.Counter:
		return []Event{PasskeySuspected{Passkey: p.ID, Counter: cmd.Counter, At: cmd.At}}, nil
	}
	return []Event{PasskeyUsed{Passkey: p.ID, Counter: cmd.Counter, BackedUp: cmd.BackedUp, At: cmd.At}}, nil
}

// Remove decides to end the passkey. It is idempotent.
func (p Passkey) Remove(at time.Time) ([]Event, error) {
	switch {
	case p.ID == "":
		return nil, ErrNotFound
	case p.Revocation.state() == Revoked:
		return nil, nil
	}
	return []Event{PasskeyRemoved{Passkey: p.ID, At: at}}, nil
}

// Apply applies an event.
func (p *Passkey) Apply(event Event) {
	switch e := event.(type) {
	case PasskeyRegistered:
		*p = Passkey{
			ID: e.Passkey, Organization: e.Organization, Member: e.Member, Name: e.Name, Credential: e.Credential, RegisteredAt: e.At,
		}
	case PasskeyUsed:
		p.Credential.Counter, p.Credential.BackedUp, p.UsedAt = e.Counter, e.BackedUp, e.At
	case PasskeySuspected:
		p.SuspectedAt = e.At
	case PasskeyRemoved:
		p.Revocation = Revocation{At: e.At}
	default:
		panic(fmt.Sprintf("BUG: a passkey does not know %T", event))
	}
}

func (p *Passkey) audited() (Target, Fields) {
	return Target{"passkey", p.ID, p.Name}, Fields{
		"name": p.Name, "member": p.Member, "used_at": p.UsedAt, "suspected_at": p.SuspectedAt, "state": string(p.Revocation.state()),
	}
}
