package tenants

import (
	"errors"
	"fmt"
	"time"
)

// An OwnerCode lets somebody become the first owner of an installation that has no member. There is one at a time.
type OwnerCode struct {
	Digest       SecretDigest // zero: none was issued
	ExpiresAt    time.Time
	UsedAt       time.Time // zero: it was not
	Organization string    // what its user owns
	Member       string    // who its user is
}

// ErrFounded says that the installation has members, who invite others.
var ErrFounded = errors.New("the installation has members already")

// IssueOwnerCode asks for a code for the first owner.
type IssueOwnerCode struct {
	Founded bool // the installation has members
	Digest  SecretDigest
	At      time.Time
}

// OwnerCodeIssued lets somebody become the first owner. The code of before is void.
type OwnerCodeIssued struct {
	Digest    SecretDigest `json:"imprint"`
	At        time.Time    `json:"at"`
	ExpiresAt time.Time    `json:"expires_at"`
}

// OwnerCodeUsed says who became the first owner, and of what.
type OwnerCodeUsed struct {
	Organization string    `json:"organization"`
	Member       string    `json:"member"`
	At           time.Time `json:"at"`
}

// Issue decides on a code for the first owner; ErrFounded where there are members.
func (o OwnerCode) Issue(cmd IssueOwnerCode) ([]Event, error) {
	if cmd.Founded {
		return nil, ErrFounded
	}
	return []Event{OwnerCodeIssued{Digest: cmd.Digest, At: cmd.At, ExpiresAt: cmd.At.Add(OwnerCodeLasts)}}, nil
}

// UseOwnerCode asks to become the first owner.
type UseOwnerCode struct {
	Founded      bool   // the installation has members
	Code         string // hash of the code that was shown; see SecretDigest
	Organization string
	Member       string
	At           time.Time
}

// Use decides that somebody becomes the first owner. Where there are members the code is void, however they came.
func (o OwnerCode) Use(cmd UseOwnerCode) ([]Event, error) {
	if err := o.Admits(cmd.Code, cmd.Founded, cmd.At); err != nil {
		return nil, err
	}
	return []Event{OwnerCodeUsed{Organization: cmd.Organization, Member: cmd.Member, At: cmd.At}}, nil
}

// Admits is nil where a code with a hash makes an owner at a time; see ErrCode.
func (o OwnerCode) Admits(code string, founded bool, at time.Time) error {
	err := issuedCode{hash: o.Digest.Hash, usedAt: o.UsedAt, expiresAt: o.ExpiresAt}.admits(code, at)
	if err == nil && founded {
		err = ErrCodeRevoked
	}
	return err
}

// Apply brings the code forward.
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
