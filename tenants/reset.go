package tenants

import "time"

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
	Digest    SecretDigest `json:"imprint"`
	At        time.Time    `json:"at"`
	ExpiresAt time.Time    `json:"expires_at"`
	By        string       `json:"by,omitempty"`
}

// EventName implements Event.
func (MemberResetCodeIssued) EventName() string { return "tenants.v1.member_reset_code_issued" }

func (e MemberResetCodeIssued) audit() auditForm {
	return auditForm{"member.reset_code_issued", e.At, &Member{}}
}

// Publication implements Event.
func (MemberResetCodeIssued) Publication() Publication { return Unpublished }

// MemberPasswordChanged sets a member's password and
// voids a reset code. A reset also removes the identity
// at the provider, until the next sign-in by it.
type MemberPasswordChanged struct {
	Member       string    `json:"member"`
	PasswordHash string    `json:"password_hash"`
	Reset        bool      `json:"reset,omitempty"` // by a code, not by the previous password
	At           time.Time `json:"at"`
}

// EventName implements Event.
func (MemberPasswordChanged) EventName() string { return "tenants.v1.member_password_changed" }

func (e MemberPasswordChanged) audit() auditForm {
	return auditForm{"member.password_changed", e.At, &Member{}}
}

// Publication implements Event.
func (MemberPasswordChanged) Publication() Publication { return Unpublished }

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
