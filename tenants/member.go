package tenants

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
	"unicode/utf8"
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

func (e MemberAdded) meta() eventMeta {
	return eventMeta{"tenants.v1.member_added", PublishedFact, "member.added", e.At, &Member{}, kept}
}

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

func (e MemberRoleChanged) meta() eventMeta {
	return eventMeta{"tenants.v1.member_role_changed", PublishedFact, "member.role_changed", e.At, &Member{}, byNext}
}

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

func (e MemberRemoved) meta() eventMeta {
	return eventMeta{"tenants.v1.member_removed", PublishedFact, "member.removed", e.At, &Member{}, kept}
}

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

func (e MemberIdentified) meta() eventMeta {
	return eventMeta{"tenants.v1.member_identified", Unpublished, "member.identified", e.At, &Member{}, byNext}
}

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

// A MailKind is one kind of mail from which members can unsubscribe.
type MailKind string

// The kinds of mail. They are stored in events and part of links.
const (
	ThresholdMail MailKind = "threshold" // a part of the quota or of a budget is used
	ExhaustedMail MailKind = "exhausted" // a quota or budget is used up, or available again
	StatementMail MailKind = "statement" // a period has its statement
	MentionMail   MailKind = "mention"   // a note about an error mentions the member
)

// MailKinds lists all of them.
func MailKinds() []MailKind {
	return []MailKind{ThresholdMail, ExhaustedMail, StatementMail, MentionMail}
}

// Mails are the kinds of mail that a role gets: owners and billing members those
// about the account, and all but billing members those about errors.
func (r Role) Mails() []MailKind {
	return slices.DeleteFunc(MailKinds(), func(kind MailKind) bool {
		if kind == MentionMail {
			return !r.May(ErrorsRead)
		}
		return r != Owner && r != Billing
	})
}

// ChooseMails is the command to get some kinds of mail and no others of those
// that the member's role gets.
type ChooseMails struct {
	Wanted []MailKind
	At     time.Time
}

// MemberMailsChosen lists the kinds of mail that a member does not get.
type MemberMailsChosen struct {
	Member  string     `json:"member"`
	Without []MailKind `json:"without"` // in the order of MailKinds
	At      time.Time  `json:"at"`
}

func (e MemberMailsChosen) meta() eventMeta {
	return eventMeta{"tenants.v1.member_mails_chosen", Unpublished, "member.mails_chosen", e.At, &Member{}, kept}
}

// Check returns Invalid with every fault of the command, or nil.
func (c ChooseMails) Check() error {
	var faults Invalid
	for _, kind := range c.Wanted {
		if !slices.Contains(MailKinds(), kind) {
			faults = append(faults, Fault{"mails", fmt.Sprintf("mails has %q.", kind), oneOf(MailKinds())})
		}
	}
	return faults.orNil()
}

// ChooseMails decides which mail the member gets. It
// is idempotent. ErrNotFound for a former member.
func (m Member) ChooseMails(cmd ChooseMails) ([]Event, error) {
	if err := cmd.Check(); err != nil {
		return nil, err
	}
	ofRole := m.Role.Mails()
	return m.chooseMails(cmd.At, func(kind MailKind) bool {
		if !slices.Contains(ofRole, kind) {
			return m.Receives(kind)
		}
		return slices.Contains(cmd.Wanted, kind)
	})
}

func (m Member) chooseMails(at time.Time, wants func(MailKind) bool) ([]Event, error) {
	if !m.exists() {
		return nil, ErrNotFound
	}
	without := slices.DeleteFunc(MailKinds(), wants)
	if slices.Equal(without, m.WithoutMails) {
		return nil, nil
	}
	return []Event{MemberMailsChosen{Member: m.ID, Without: without, At: at}}, nil
}

// Unsubscribe decides that the member no longer
// gets one kind of mail; otherwise as ChooseMails.
func (m Member) Unsubscribe(kind MailKind, at time.Time) ([]Event, error) {
	return m.chooseMails(at, func(each MailKind) bool { return each != kind && m.Receives(each) })
}

// Receives reports whether the member gets a kind of mail.
func (m Member) Receives(kind MailKind) bool { return !slices.Contains(m.WithoutMails, kind) }

// mailNames are kinds of mail as the audit shows them.
func mailNames(kinds []MailKind) (names []string) {
	for _, kind := range kinds {
		names = append(names, string(kind))
	}
	return names
}

// Bounds of passwords, in characters. The
// upper one only bounds the work of a sign-in.
const (
	minPassword = 12
	maxPassword = 128
)

// A Password is a password in plaintext.
// Printing never shows it; only Reveal does.
type Password string

// Reveal returns the password in plaintext. Review every call.
func (p Password) Reveal() string { return string(p) }

// Format hides the password whatever the verb.
func (p Password) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(hidden)) }

// LogValue hides the password.
func (p Password) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText hides the password.
func (p Password) MarshalText() ([]byte, error) { return []byte(hidden), nil }

func checkPassword(field string, p Password) Invalid {
	n := utf8.RuneCountInString(string(p))
	if n >= minPassword && n <= maxPassword {
		return nil
	}
	return Invalid{{field, fmt.Sprintf("%s has %d characters.", field, n),
		fmt.Sprintf("Use %d to %d characters; several words are easier to remember than signs.", minPassword, maxPassword)}}
}
