package tenants

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// A Member is a person in one organization, who signs in to
// the console. Only a slow hash of the password is stored.
type Member struct {
	ID           string // empty until added
	Organization string
	Email        string // see NormalEmail; no other member in the installation has it
	Name         string
	Role         Role
	PasswordHash string    // as internal/password writes it
	PasswordAt   time.Time // when the password was set
	AddedAt      time.Time
	RemovedAt    time.Time // zero: still a member
	Reset        ResetCode // zero: none is issued
	Identity     ProviderIdentity
	WithoutMails []MailKind // unsubscribed; empty: gets all

	added MemberAdded
}

// ErrLastOwner means that an organization keeps at least one owner.
var ErrLastOwner = errors.New("an organization keeps at least one owner")

// AddMember is the command to add a member to an existing organization.
// PasswordHash must be that of Password, which Check needs.
type AddMember struct {
	ID           string
	Organization string
	Email        string
	Name         string
	Role         Role
	Password     Password
	PasswordHash string
	At           time.Time
}

// MemberAdded starts a member.
type MemberAdded struct {
	Member       string    `json:"member"`
	Organization string    `json:"organization"`
	Email        string    `json:"email"`
	Name         string    `json:"name"`
	Role         Role      `json:"role"`
	PasswordHash string    `json:"password_hash"`
	At           time.Time `json:"at"`
}

// EventName implements Event.
func (MemberAdded) EventName() string { return "tenants.v1.member_added" }

func (e MemberAdded) audit() auditForm { return auditForm{"member.added", e.At, &Member{}} }

// Publication implements Event.
func (MemberAdded) Publication() Publication { return Unpublished }

// Check returns Invalid with every fault of the command, or nil.
func (c AddMember) Check() error {
	faults := checkGiven("organization", c.Organization)
	faults = append(faults, checkEmail("email", c.Email)...)
	faults = append(faults, checkName(c.Name)...)
	faults = append(faults, checkRole(c.Role)...)
	return append(faults, checkPassword("password", c.Password)...).orNil()
}

// Add decides on a new member. It is idempotent, and the first password
// stays; with another address, name or role it fails with ErrReused.
func (m Member) Add(cmd AddMember) ([]Event, error) {
	if err := cmd.Check(); err != nil {
		return nil, err
	}
	added := MemberAdded{
		Member: cmd.ID, Organization: cmd.Organization, Email: NormalEmail(cmd.Email), Name: CleanName(cmd.Name),
		Role: cmd.Role, PasswordHash: cmd.PasswordHash, At: cmd.At,
	}
	switch {
	case m.ID == "":
		return []Event{added}, nil
	case m.added.Email != added.Email || m.added.Name != added.Name || m.added.Role != added.Role:
		return nil, ErrReused
	}
	return nil, nil
}

// ChangeRole is the command to change a member's role.
type ChangeRole struct {
	Role        Role
	By          Role // the caller's
	OtherOwners int  // owners of the organization beside the member
	At          time.Time
}

// MemberRoleChanged gives a member another role.
type MemberRoleChanged struct {
	Member string    `json:"member"`
	Role   Role      `json:"role"`
	At     time.Time `json:"at"`
}

// EventName implements Event.
func (MemberRoleChanged) EventName() string { return "tenants.v1.member_role_changed" }

func (e MemberRoleChanged) audit() auditForm {
	return auditForm{"member.role_changed", e.At, &Member{}}
}

// Publication implements Event.
func (MemberRoleChanged) Publication() Publication { return Unpublished }

// Check returns Invalid with every fault of the command, or nil.
func (c ChangeRole) Check() error {
	return checkRole(c.Role).orNil()
}

func checkRole(role Role) Invalid {
	if slices.Contains(Roles(), role) {
		return nil
	}
	return Invalid{{"role", fmt.Sprintf("role is %q.", role), oneOf(Roles())}}
}

// ChangeRole decides on another role. It is idempotent. The
// caller's role must manage both, and the last owner stays one.
func (m Member) ChangeRole(cmd ChangeRole) ([]Event, error) {
	if err := cmd.Check(); err != nil {
		return nil, err
	}
	switch {
	case !m.exists():
		return nil, ErrNotFound
	case !cmd.By.MayManage(m.Role) || !cmd.By.MayManage(cmd.Role):
		return nil, ErrForbidden
	case m.Role == cmd.Role:
		return nil, nil
	case m.Role == Owner && cmd.OtherOwners == 0:
		return nil, ErrLastOwner
	}
	return []Event{MemberRoleChanged{Member: m.ID, Role: cmd.Role, At: cmd.At}}, nil
}

// RemoveMember is the command to remove a member.
type RemoveMember struct {
	By          Role // the caller's
	OtherOwners int  // owners of the organization beside the member
	At          time.Time
}

// MemberRemoved ends a membership. The address is free again.
type MemberRemoved struct {
	Member string    `json:"member"`
	At     time.Time `json:"at"`
}

// EventName implements Event.
func (MemberRemoved) EventName() string { return "tenants.v1.member_removed" }

func (e MemberRemoved) audit() auditForm { return auditForm{"member.removed", e.At, &Member{}} }

// Publication implements Event.
func (MemberRemoved) Publication() Publication { return Unpublished }

// Remove decides to remove the member. It is idempotent. The
// caller's role must manage the member's, and the last owner stays.
func (m Member) Remove(cmd RemoveMember) ([]Event, error) {
	switch {
	case m.ID == "":
		return nil, ErrNotFound
	case !cmd.By.MayManage(m.Role):
		return nil, ErrForbidden
	case !m.exists():
		return nil, nil
	case m.Role == Owner && cmd.OtherOwners == 0:
		return nil, ErrLastOwner
	}
	return []Event{MemberRemoved{Member: m.ID, At: cmd.At}}, nil
}

func (m Member) exists() bool {
	return m.ID != "" && m.RemovedAt.IsZero()
}

// Apply applies an event.
func (m *Member) Apply(event Event) {
	switch e := event.(type) {
	case MemberAdded:
		*m = Member{
			ID: e.Member, Organization: e.Organization, Email: e.Email, Name: e.Name, Role: e.Role,
			PasswordHash: e.PasswordHash, PasswordAt: e.At, AddedAt: e.At, added: e,
		}
	case MemberRoleChanged:
		m.Role = e.Role
	case MemberRemoved:
		m.RemovedAt, m.Reset, m.Identity, m.WithoutMails = e.At, ResetCode{}, ProviderIdentity{}, nil
	case MemberPasswordChanged:
		m.PasswordHash, m.PasswordAt, m.Reset = e.PasswordHash, e.At, ResetCode{}
		if e.Reset {
			m.Identity = ProviderIdentity{}
		}
	case MemberIdentified:
		m.Identity = ProviderIdentity{e.Issuer, e.Subject}
	case MemberMailsChosen:
		m.WithoutMails = e.Without
	case MemberResetCodeIssued:
		m.Reset = ResetCode{Hash: e.Digest.Hash, ExpiresAt: e.ExpiresAt, By: e.By}
	default:
		panic(fmt.Sprintf("BUG: a member does not know %T", event))
	}
}

func (m *Member) audited() (Target, Fields) {
	return Target{"member", m.ID, m.Name}, Fields{
		"name": m.Name, "email": m.Email, "role": string(m.Role), "removed_at": m.RemovedAt,
		"password_changed_at": changedAfter(m.AddedAt, m.PasswordAt), "reset_code_expires_at": m.Reset.ExpiresAt,
		"identity_provider": m.Identity.Issuer, "identity": m.Identity.Subject, "without_mails": mailNames(m.WithoutMails),
	}
}

// changedAfter is the time of the last change;
// zero if there was none since the beginning.
func changedAfter(beginning, at time.Time) time.Time {
	if at.Equal(beginning) {
		return time.Time{}
	}
	return at
}
