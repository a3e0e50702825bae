package tenants

import (
	"errors"
	"fmt"
	"time"
)

// Prefixes of codes for people who can't sign in
// yet. Each works once; only its digest is stored.
const (
	InvitationPrefix = "weirinv_" // to join an organization
	OwnerCodePrefix  = "weirown_" // to become the first owner of an installation
	ResetPrefix      = "weirpwd_" // to set a new password
)

// How long the codes work.
const (
	InvitationLifetime = 7 * 24 * time.Hour
	OwnerCodeLifetime  = 24 * time.Hour
	ResetCodeLifetime  = 24 * time.Hour
)

// ErrCode means that a code can't be used. It wraps the reason, which
// only holders of the code may learn: nobody guesses 192 random bits.
var (
	ErrCode        = errors.New("the code is not valid")
	ErrCodeUsed    = fmt.Errorf("the code was used: %w", ErrCode)
	ErrCodeRevoked = fmt.Errorf("the code was taken back: %w", ErrCode)
	ErrCodeExpired = fmt.Errorf("the code has expired: %w", ErrCode)
)

// An issuedCode is what is stored of an issued code.
type issuedCode struct {
	hash      string // see SecretDigest; empty: none is issued
	usedAt    time.Time
	revokedAt time.Time
	expiresAt time.Time
}

// admits is nil if hash is that of the issued code,
// and the code works at a time; else see ErrCode.
func (c issuedCode) admits(hash string, at time.Time) error {
	switch {
	case c.hash == "" || c.hash != hash:
		return ErrCode
	case !c.usedAt.IsZero():
		return ErrCodeUsed
	case !c.revokedAt.IsZero():
		return ErrCodeRevoked
	case !at.Before(c.expiresAt):
		return ErrCodeExpired
	}
	return nil
}

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
	Digest    SecretDigest `json:"digest"`
	At        time.Time    `json:"at"`
	ExpiresAt time.Time    `json:"expires_at"`
}

func (e OwnerCodeIssued) meta() eventMeta {
	return eventMeta{"tenants.v1.owner_code_issued", Unpublished, "owner_code.issued", e.At, &OwnerCode{}, kept}
}

// OwnerCodeUsed records who became the first owner, and of what.
type OwnerCodeUsed struct {
	Organization string    `json:"organization"`
	Member       string    `json:"member"`
	At           time.Time `json:"at"`
}

func (e OwnerCodeUsed) meta() eventMeta {
	return eventMeta{"tenants.v1.owner_code_used", Unpublished, "owner_code.used", e.At, &OwnerCode{}, kept}
}

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

// A ResetCode lets its holder set a member's password, once.
type ResetCode struct {
	Hash      string // see SecretDigest; empty: none is issued
	ExpiresAt time.Time
	By        string // its issuer; empty for the first codes
}

// MemberResetCodeIssued gives a member's manager
// a code to pass on. The previous code is void.
type MemberResetCodeIssued struct {
	Member    string       `json:"member"`
	Digest    SecretDigest `json:"digest"`
	At        time.Time    `json:"at"`
	ExpiresAt time.Time    `json:"expires_at"`
	By        string       `json:"by,omitempty"`
}

func (e MemberResetCodeIssued) meta() eventMeta {
	return eventMeta{"tenants.v1.member_reset_code_issued", Unpublished, "member.reset_code_issued", e.At, &Member{}, byNext}
}

// MemberPasswordChanged sets a member's password and
// voids a reset code. A reset also removes the identity
// at the provider, until the next sign-in by it.
type MemberPasswordChanged struct {
	Member       string    `json:"member"`
	PasswordHash string    `json:"password_hash"`
	Reset        bool      `json:"reset,omitempty"` // by a code, not by the previous password
	At           time.Time `json:"at"`
}

func (e MemberPasswordChanged) meta() eventMeta {
	// by a code it also removes the identity
	return eventMeta{"tenants.v1.member_password_changed", Unpublished, "member.password_changed", e.At, &Member{}, Replacement{By: 1, Switch: "reset"}}
}

// IssueResetCode is the command to issue
// a code that resets a member's password.
type IssueResetCode struct {
	By     string // the caller
	ByRole Role
	Digest SecretDigest
	At     time.Time
}

// IssueResetCode decides to let the member set another password. The caller's
// role must manage the member's, as the code gives the member's access.
func (m Member) IssueResetCode(cmd IssueResetCode) ([]Event, error) {
	switch {
	case !m.exists():
		return nil, ErrNotFound
	case !cmd.ByRole.MayManage(m.Role):
		return nil, ErrForbidden
	}
	return []Event{MemberResetCodeIssued{
		Member: m.ID, Digest: cmd.Digest, At: cmd.At, ExpiresAt: cmd.At.Add(ResetCodeLifetime), By: cmd.By,
	}}, nil
}

// ChangePassword is the command to set a member's password.
// PasswordHash must be that of Password, which Check needs.
type ChangePassword struct {
	Before       string // hash of the shown password; not for a reset
	Code         string // hash of the shown code; only for a reset
	IssuerRole   Role   // present role of the code's issuer; only for a reset
	Password     Password
	PasswordHash string
	At           time.Time
}

// Check returns Invalid with every fault of the command, or nil.
func (c ChangePassword) Check() error {
	return checkPassword("password", c.Password).orNil()
}

// ChangePassword decides on another password after the
// previous one was shown. ErrNotFound if that has changed.
func (m Member) ChangePassword(cmd ChangePassword) ([]Event, error) {
	if err := cmd.Check(); err != nil {
		return nil, err
	}
	if !m.exists() || m.PasswordHash != cmd.Before {
		return nil, ErrNotFound
	}
	return []Event{MemberPasswordChanged{Member: m.ID, PasswordHash: cmd.PasswordHash, At: cmd.At}}, nil
}

// ResetPassword decides on another password for the
// holder of the code. Its issuer may have kept it: it
// is void once they don't manage the member any more.
func (m Member) ResetPassword(cmd ChangePassword) ([]Event, error) {
	if err := cmd.Check(); err != nil {
		return nil, err
	}
	if err := (issuedCode{hash: m.Reset.Hash, expiresAt: m.Reset.ExpiresAt}).admits(cmd.Code, cmd.At); err != nil {
		return nil, err
	}
	if m.Reset.By != "" && !cmd.IssuerRole.MayManage(m.Role) {
		return nil, ErrCodeRevoked
	}
	return []Event{MemberPasswordChanged{Member: m.ID, PasswordHash: cmd.PasswordHash, Reset: true, At: cmd.At}}, nil
}
