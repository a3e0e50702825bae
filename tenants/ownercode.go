package tenants

import (
	"errors"
	"fmt"
	"time"
)

// An OwnerCode lets its holder become the first owner of
// an installation without members. There is one at a time.
type OwnerCode struct {
	Digest       SecretDigest // zero: none was issued
	ExpiresAt    time.Time
	UsedAt       time.Time // zero: not used
	Organization string    // of its user
	Member       string    // its user
}

// ErrHasMembers means that the installation
// has members, who can invite others.
var ErrHasMembers = errors.New("the installation has members already")

// IssueOwnerCode is the command to issue a code for the first owner.
type IssueOwnerCode struct {
	HasMembers bool // the installation has members
	Digest     SecretDigest
	At         time.Time
}

// OwnerCodeIssued lets its holder become the
// first owner. The previous code is void.
type OwnerCodeIssued struct {
	Digest    SecretDigest `json:"imprint"`
	At        time.Time    `json:"at"`
	ExpiresAt time.Time    `json:"expires_at"`
}

// EventName implements Event.
func (OwnerCodeIssued) EventName() string { return "tenants.v1.owner_code_issued" }

func (e OwnerCodeIssued) audit() auditForm { return auditForm{"owner_code.issued", e.At, &OwnerCode{}} }

// Publication implements Event.
func (OwnerCodeIssued) Publication() Publication { return Unpublished }

// OwnerCodeUsed records who became the first owner, and of what.
type OwnerCodeUsed struct {
	Organization string    `json:"organization"`
	Member       string    `json:"member"`
	At           time.Time `json:"at"`
}

// EventName implements Event.
func (OwnerCodeUsed) EventName() string { return "tenants.v1.owner_code_used" }

func (e OwnerCodeUsed) audit() auditForm { return auditForm{"owner_code.used", e.At, &OwnerCode{}} }

// Publication implements Event.
func (OwnerCodeUsed) Publication() Publication { return Unpublished }

// Issue decides on a code for the first
// owner. ErrHasMembers if there are members.
func (o OwnerCode) Issue(cmd IssueOwnerCode) ([]Event, error) {
	if cmd.HasMembers {
		return nil, ErrHasMembers
	}
	return []Event{OwnerCodeIssued{Digest: cmd.Digest, At: cmd.At, ExpiresAt: cmd.At.Add(OwnerCodeLifetime)}}, nil
}

// UseOwnerCode is the command to become the first owner.
type UseOwnerCode struct {
	HasMembers   bool   // the installation has members
	Code         string // hash of the shown code; see SecretDigest
	Organization string
	Member       string
	At           time.Time
}

// Use decides that the holder becomes the first
// owner. The code is void if there are members.
func (o OwnerCode) Use(cmd UseOwnerCode) ([]Event, error) {
	if err := o.Admits(cmd.Code, cmd.HasMembers, cmd.At); err != nil {
		return nil, err
	}
	return []Event{OwnerCodeUsed{Organization: cmd.Organization, Member: cmd.Member, At: cmd.At}}, nil
}

// Admits is nil if a code with a hash makes
// an owner at a time; else see ErrCode.
func (o OwnerCode) Admits(code string, founded bool, at time.Time) error {
	err := issuedCode{hash: o.Digest.Hash, usedAt: o.UsedAt, expiresAt: o.ExpiresAt}.admits(code, at)
	if err == nil && founded {
		err = ErrCodeRevoked
	}
	return err
}

// Apply applies an event.
func (o *OwnerCode) Apply(event Event) {
	switch e := event.(type) {
	case OwnerCodeIssued:
		*o = OwnerCode{Digest: e.Digest, ExpiresAt: e.ExpiresAt}
	case OwnerCodeUsed:
		o.UsedAt, o.Organization, o.Member = e.At, e.Organization, e.Member
	default:
		panic(fmt.Sprintf("BUG: an owner's code does not know %T", event))
	}
}

func (o *OwnerCode) audited() (Target, Fields) {
	if o.Digest.Hash == "" {
		return Target{Kind: "owner_code"}, nil
	}
	return Target{"owner_code", o.Digest.First + o.Digest.Last, ""}, Fields{
		"code": o.Digest.shown(OwnerCodePrefix), "expires_at": o.ExpiresAt, "used_at": o.UsedAt,
		"organization": o.Organization, "member": o.Member,
	}
}
