package people

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/password"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// Prefixes of ids, for readers.
const (
	memberPrefix     = "mem_"
	invitationPrefix = "inv_"
)

// ErrEmailTaken means that a member of some organization has the address.
var ErrEmailTaken = errors.New("the e-mail address is taken")

// Organizations finds and creates organizations.
type Organizations interface {
	// Organization returns one that a caller
	// may access, or tenants.ErrNotFound.
	Organization(ctx context.Context, caller tenants.Caller, id string) (tenants.Organization, error)
	NewOrganizationID() string
	// CreateIn creates one in a unit of work of its first owner.
	CreateIn(ctx context.Context, u *unitofwork.Unit, cmd tenants.CreateOrganization) error
}

// A Registry reads what is registered of
// organizations, as some reader sees it.
type Registry interface {
	Organization(ctx context.Context, as pg.Organization, id string) (tenants.Organization, error)
	SecurityPolicy(ctx context.Context, as, organization pg.Organization) (tenants.SecurityPolicy, error)
	ServiceToken(ctx context.Context, as pg.Organization, id string) (tenants.ServiceToken, error)
}

// SignIns start and end access, in an open unit of work.
type SignIns interface {
	StartSession(ctx context.Context, u *unitofwork.Unit, member tenants.Member, method tenants.SignInMethod) (tenants.SignInResult, error)
	// ChangeRoles sets the role of a member's open sessions.
	ChangeRoles(ctx context.Context, u *unitofwork.Unit, member tenants.Member, role tenants.Role, at time.Time) error
	// EndSessions ends a member's open sessions, and forgets their browsers.
	EndSessions(ctx context.Context, u *unitofwork.Unit, member tenants.Member, reason string) error
	RemovePasskeys(ctx context.Context, u *unitofwork.Unit, member tenants.Member) error
}

// Config is what the services need. Only SignInMethods may be empty.
type Config struct {
	Work          *unitofwork.Writer
	Organizations Organizations
	Registry      func(in *query.Reader) Registry
	SignIns       SignIns
	Passwords     *password.Hasher
	SignInMethods SignInMethods
}

// A Service decides about members. Its errors are those of unitofwork.Writer.
type Service struct {
	Config
	store Store
}

// NewService returns a service.
func NewService(config Config) *Service { return &Service{config, NewStore(config.Work.Views)} }

// NewMember is a requested member.
type NewMember struct {
	Organization string
	Email        string
	Name         string
	Role         tenants.Role
	Password     tenants.Password
}

// Add adds a person with a password; only for operators, since
// ErrEmailTaken reveals members elsewhere. Others invite.
func (s *Service) Add(ctx context.Context, request unitofwork.Request, wanted NewMember) (member tenants.Member, err error) {
	if !request.Caller.IsOperator() {
		return member, fmt.Errorf("add a member with a password: %w", tenants.ErrForbidden)
	}
	cmd := tenants.AddMember{
		Organization: wanted.Organization, Email: wanted.Email, Name: wanted.Name, Role: wanted.Role,
		Password: wanted.Password, At: s.Work.Now(),
	}
	if err := cmd.Check(); err != nil {
		return member, err
	}
	if _, err := s.Organizations.Organization(ctx, request.Caller, wanted.Organization); err != nil {
		return member, err
	}
	if cmd.PasswordHash, err = s.hash(ctx, request.Caller.Organization, cmd); err != nil {
		return member, err
	}
	cmd.ID = s.Work.NewID(request, memberPrefix, wanted.Organization)
	return s.add(ctx, request, cmd)
}

// hash hashes the password of a future member, unless
// it is common, in the turn of the organization asker.
func (s *Service) hash(ctx context.Context, asker string, who tenants.AddMember) (string, error) {
	organization, err := s.Registry(s.Work.Views).Organization(ctx, tenants.Installation, who.Organization)
	if err != nil {
		return "", err
	}
	if err := password.CheckCommon(who.Password, organization.Name, who.Email, who.Name); err != nil {
		return "", err
	}
	return s.Passwords.Hash(ctx, password.Known(asker), who.Password)
}

func (s *Service) add(ctx context.Context, request unitofwork.Request, cmd tenants.AddMember) (member tenants.Member, err error) {
	member, err = unitofwork.CreateOnce(ctx, s.Work, request, tenants.MembersManage, stream(cmd.Organization, cmd.ID),
		func(m tenants.Member) ([]tenants.Event, error) { return m.Add(cmd) }, counted(tenants.CountMembers))
	return member, emailTaken(err, cmd.Email)
}

// emailTaken is ErrEmailTaken if a member could
// not be added because the address is taken.
func emailTaken(err error, email string) error {
	if pg.IsUnique(err) {
		return fmt.Errorf("add member %q: %w", tenants.NormalEmail(email), ErrEmailTaken)
	}
	return err
}

// List lists the members of an organization that the caller may access.
func (s *Service) List(ctx context.Context, caller tenants.Caller, organization string, after query.Position, limit int) ([]tenants.Member, error) {
	if _, err := s.Organizations.Organization(ctx, caller, organization); err != nil {
		return nil, err
	}
	return s.store.Members(ctx, pg.Organization(caller.Organization), pg.Organization(organization), after, limit)
}

// Capacity is how many members the caller's organization has, and may have.
func (s *Service) Capacity(ctx context.Context, caller tenants.Caller) (tenants.Capacity, error) {
	return s.Work.Capacity(ctx, caller, tenants.CountMembers, count)
}

// ChangeRole changes the role of a member that the caller may
// access, in force in their sessions on return, unless the broker
// is slow or unavailable. It fails with tenants.ErrLastOwner.
func (s *Service) ChangeRole(ctx context.Context, request unitofwork.Request, id string, role tenants.Role) (member tenants.Member, err error) {
	cmd := tenants.ChangeRole{Role: role, At: s.Work.Now()}
	if err := cmd.Check(); err != nil {
		return member, err
	}
	u, found, err := s.begin(ctx, request, id)
	if err != nil {
		return member, err
	}
	defer u.Rollback(ctx)
	if cmd.By, cmd.OtherOwners, err = s.callerRole(ctx, u, found); err != nil {
		return member, err
	}
	member, err = unitofwork.Change(ctx, u, stream(found.Organization, id),
		func(m tenants.Member) ([]tenants.Event, error) { return m.ChangeRole(cmd) })
	if err != nil {
		return member, err
	}
	if err := s.SignIns.ChangeRoles(ctx, u, member, role, cmd.At); err != nil {
		return member, err
	}
	if err := withdraw(ctx, u, member, role); err != nil {
		return member, err
	}
	return member, u.Commit(ctx)
}

// Remove removes a member that the caller may access, and ends their
// sessions everywhere, unless the broker is slow or unavailable. It
// is idempotent. It fails with tenants.ErrLastOwner.
func (s *Service) Remove(ctx context.Context, request unitofwork.Request, id string) (member tenants.Member, err error) {
	cmd := tenants.RemoveMember{At: s.Work.Now()}
	u, found, err := s.begin(ctx, request, id)
	if err != nil {
		return member, err
	}
	defer u.Rollback(ctx)
	if cmd.By, cmd.OtherOwners, err = s.callerRole(ctx, u, found); err != nil {
		return member, err
	}
	member, err = unitofwork.Change(ctx, u, stream(found.Organization, id),
		func(m tenants.Member) ([]tenants.Event, error) { return m.Remove(cmd) })
	if err != nil {
		return member, err
	}
	if err := s.SignIns.EndSessions(ctx, u, member, "the member was removed"); err != nil {
		return member, err
	}
	if err := withdraw(ctx, u, member, ""); err != nil {
		return member, err
	}
	return member, u.Commit(ctx)
}

// begin opens a unit of work about a member that the caller may
// access, even a removed one. The caller defers the Rollback.
func (s *Service) begin(ctx context.Context, request unitofwork.Request, id string) (u *unitofwork.Unit, found tenants.Member, err error) {
	if !tenants.IsID(id) {
		return nil, found, fmt.Errorf("member %q: %w", id, tenants.ErrNotFound)
	}
	if found, err = s.store.MemberEver(ctx, pg.Organization(request.Caller.Organization), id); err != nil {
		return nil, found, err
	}
	u, err = s.Work.Begin(ctx, found.Organization, request)
	return u, found, err
}

// callerRole is the caller's role toward a member, and how
// many other owners there are. Both stay true until the unit
// ends: of two owners who demote each other one is refused.
func (s *Service) callerRole(ctx context.Context, u *unitofwork.Unit, member tenants.Member) (by tenants.Role, otherOwners int, err error) {
	if by, err = u.Role(ctx); err != nil {
		return by, 0, err
	}
	off, err := s.passwordsOff(ctx, u.Reader(), member.Organization)
	if err != nil {
		return by, 0, err
	}
	store, organization := NewStore(u.Reader()), pg.Organization(member.Organization)
	if off { // only those count who could sign in
		otherOwners, err = store.OwnersWithoutPassword(ctx, organization, s.SignInMethods, member.ID)
		return by, otherOwners, err
	}
	otherOwners, err = store.OtherOwners(ctx, organization, member.ID)
	return by, otherOwners, err
}

// passwordsOff reports whether an organization has switched passwords off.
func (s *Service) passwordsOff(ctx context.Context, in *query.Reader, organization string) (bool, error) {
	policy, err := s.Registry(in).SecurityPolicy(ctx, pg.Organization(organization), pg.Organization(organization))
	return policy.PasswordsOff, err
}

// withdraw revokes a member's open invitations that their new role
// may not create: a departing member must not admit somebody later.
func withdraw(ctx context.Context, u *unitofwork.Unit, member tenants.Member, role tenants.Role) error {
	invitations, err := NewStore(u.Reader()).InvitationsBy(ctx, pg.Organization(member.Organization), member.ID)
	if err != nil {
		return err
	}
	for _, invitation := range invitations {
		if role.MayInvite(invitation.Role) {
			continue
		}
		_, err := unitofwork.Change(ctx, u, invitationStream(member.Organization, invitation.ID),
			func(i tenants.Invitation) ([]tenants.Event, error) { return i.Revoke(tenants.Owner, u.Now()) })
		if err != nil {
			return err
		}
	}
	return nil
}

// OwnersWithoutPassword is how many owners of an organization
// can sign in without a password, as a reader sees it.
func (s *Service) OwnersWithoutPassword(ctx context.Context, in *query.Reader, organization pg.Organization) (int, error) {
	return NewStore(in).OwnersWithoutPassword(ctx, organization, s.SignInMethods, "")
}

// MembersWithoutPassword is how many members of an organization
// can sign in without a password, and how many there are.
func (s *Service) MembersWithoutPassword(ctx context.Context, organization pg.Organization) (able, all int, err error) {
	if able, err = s.store.MembersWithoutPassword(ctx, organization, s.SignInMethods); err != nil {
		return 0, 0, err
	}
	all, err = count(ctx, s.Work.Views, organization, tenants.CountMembers, s.Work.Now())
	return able, all, err
}

func stream(organization, id string) eventstore.Stream {
	return unitofwork.Stream(organization, "member", id)
}

// Services decide about people and their codes.
type Services struct {
	Members     *Service
	Invitations *Invitations
	Codes       *Codes
	Mailings    *Mailings
}
