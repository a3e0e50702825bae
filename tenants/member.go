package tenants

import (
	"fmt"
	"slices"
	"time"
)

// A Member is a person in one organization, who signs in to the console. The password is not kept, only a slow hash.
type Member struct {
	ID           string // empty until added
	Organization string
	Email        string // see NormalEmail; nobody else in the installation has it
	Name         string
	Role         Role
	PasswordHash string // as internal/password writes it
	AddedAt      time.Time
}

// AddMember asks for a new member of an organization, which exists. PasswordHash is that of Password, which Check needs
// to see.
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

// Check returns Invalid with every fault of the command, or nil.
func (c AddMember) Check() error {
	faults := checkGiven("organization", c.Organization)
	faults = append(faults, checkEmail("email", c.Email)...)
	faults = append(faults, checkName(c.Name)...)
	if !slices.Contains(Roles(), c.Role) {
		faults = append(faults, Fault{"role", fmt.Sprintf("role is %q.", c.Role), oneOf(Roles())})
	}
	return append(faults, checkPassword("password", c.Password)...).orNil()
}

// Add decides on a new member. Asked again for the same one, it decides nothing, and the first password stands; for one
// with another address, name or role, it fails with ErrReused.
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
	case m.Email != added.Email || m.Name != added.Name || m.Role != added.Role:
		return nil, ErrReused
	}
	return nil, nil
}

// Apply brings the member forward.
func (m *Member) Apply(event Event) {
	switch e := event.(type) {
	case MemberAdded:
		*m = Member{
			ID: e.Member, Organization: e.Organization, Email: e.Email, Name: e.Name, Role: e.Role,
			PasswordHash: e.PasswordHash, AddedAt: e.At,
		}
	default:
		panic(fmt.Sprintf("BUG: a member does not know %T", event))
	}
}
