package people

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// Invitations decides about invitations. Its errors are those of unitofwork.Writer.
type Invitations struct {
	work          *unitofwork.Writer
	store         Store
	organizations Organizations
}

// NewInvitations returns the invitations to organizations.
func NewInvitations(work *unitofwork.Writer, organizations Organizations) *Invitations {
	return &Invitations{work, NewStore(work.Views), organizations}
}

// NewInvitation is a requested invitation.
type NewInvitation struct {
	Organization string
	Email        string
	Role         tenants.Role
}

// Invite invites somebody to an organization that the
// caller may access. The code is stored nowhere. Only
// the invited learn that the address is taken elsewhere.
func (s *Invitations) Invite(ctx context.Context, request unitofwork.Request, wanted NewInvitation) (
	invitation tenants.Invitation, code tenants.Secret, err error) {
	cmd := tenants.Invite{Organization: wanted.Organization, Email: wanted.Email, Role: wanted.Role, By: request.Caller.ID, At: s.work.Now()}
	if err := cmd.Check(); err != nil {
		return invitation, code, err
	}
	if _, err := s.organizations.Organization(ctx, request.Caller, wanted.Organization); err != nil {
		return invitation, code, err
	}
	if cmd.ID, code, err = s.work.Draw(request, invitationPrefix, wanted.Organization, tenants.InvitationPrefix); err != nil {
		return invitation, code, err
	}
	cmd.Digest = code.Digest()
	invitation, err = s.invite(ctx, request, cmd)
	return invitation, code, err
}

func (s *Invitations) invite(ctx context.Context, request unitofwork.Request, cmd tenants.Invite) (invitation tenants.Invitation, err error) {
	u, err := s.work.Begin(ctx, cmd.Organization, request)
	if err != nil {
		return invitation, err
	}
	defer u.Rollback(ctx)
	if cmd.ByRole, err = u.Role(ctx); err != nil {
		return invitation, err
	}
	invitation, err = unitofwork.Create(ctx, u, invitationStream(cmd.Organization, cmd.ID),
		func(i tenants.Invitation) ([]tenants.Event, error) { return makeNew(ctx, u, i, cmd) }, counted(tenants.CountInvitations))
	if err != nil {
		return invitation, err
	}
	return invitation, u.Commit(ctx)
}

// makeNew creates an invitation for a new person. Make
// comes first: a repeated request finds its own invitation.
func makeNew(ctx context.Context, u *unitofwork.Unit, i tenants.Invitation, cmd tenants.Invite) ([]tenants.Event, error) {
	events, err := i.Make(cmd)
	if err != nil {
		return nil, err
	}
	return events, checkNew(ctx, NewStore(u.Reader()), cmd.Organization, cmd.Email)
}

// checkNew refuses an address of a member or an open invitation
// of the organization, both of which the inviter may see.
func checkNew(ctx context.Context, store Store, organization, email string) error {
	normal := tenants.NormalEmail(email)
	isMember, err1 := store.IsMember(ctx, pg.Organization(organization), normal)
	isInvited, err2 := store.IsInvited(ctx, pg.Organization(organization), normal)
	switch {
	case err1 != nil || err2 != nil:
		return errors.Join(err1, err2)
	case isMember:
		return tenants.Invalid{{Field: "email", Detail: fmt.Sprintf("email is %q, and a member has that address.", email),
			Fix: "Change the member's role instead, or use another address."}}
	case isInvited:
		return tenants.Invalid{{Field: "email", Detail: fmt.Sprintf("email is %q, which was invited before.", email),
			Fix: "Send that invitation again, or revoke it first to choose another role."}}
	}
	return nil
}

// maxOpen is how many open invitations are looked at for a first owner.
const maxOpen = 200

// ErrHasMembers means that an organization has members, who invite others.
var ErrHasMembers = errors.New("it has members, who invite others")

// InviteOwner invites the first owner of an organization without members,
// in a unit of work at the server. An open invitation of that address gets
// another code.
func InviteOwner(ctx context.Context, u *unitofwork.Unit, organization, email string) (code tenants.Secret, err error) {
	store, at := NewStore(u.Reader()), pg.Organization(organization)
	members, err1 := store.Members(ctx, at, at, query.Position{}, 1)
	open, err2 := store.UnsettledInvitations(ctx, at, query.Position{}, maxOpen)
	if err := errors.Join(err1, err2); err != nil {
		return code, err
	}
	if len(members) > 0 {
		return code, fmt.Errorf("organization %q: %w", organization, ErrHasMembers)
	}
	cmd := tenants.Invite{
		Organization: organization, Email: email, Role: tenants.Owner, By: u.Request().Caller.ID, ByRole: tenants.Owner, At: u.Now(),
	}
	if cmd.ID, code, err = u.Draw(u.Request(), invitationPrefix, organization, tenants.InvitationPrefix); err != nil {
		return code, err
	}
	cmd.Digest = code.Digest()
	decide := func(i tenants.Invitation) ([]tenants.Event, error) { return i.Make(cmd) }
	for _, i := range open {
		if i.Email == tenants.NormalEmail(email) && i.Role == tenants.Owner {
			cmd.ID = i.ID
			decide = func(i tenants.Invitation) ([]tenants.Event, error) {
				return i.Resend(tenants.Resend{By: cmd.By, ByRole: cmd.ByRole, Digest: cmd.Digest, At: cmd.At})
			}
		}
	}
	_, err = unitofwork.Change(ctx, u, invitationStream(organization, cmd.ID), decide)
	return code, err
}

// Resend gives an invitation that the caller may access a new code,
// stored nowhere, and its full time again. The previous code is void.
func (s *Invitations) Resend(ctx context.Context, request unitofwork.Request, id string) (invitation tenants.Invitation, code tenants.Secret, err error) {
	if code, err = tenants.NewSecret(tenants.InvitationPrefix, s.work.Random); err != nil {
		return invitation, code, err
	}
	cmd := tenants.Resend{By: request.Caller.ID, Digest: code.Digest(), At: s.work.Now()}
	u, found, err := s.begin(ctx, request, id)
	if err != nil {
		return invitation, code, err
	}
	defer u.Rollback(ctx)
	if cmd.ByRole, err = u.Role(ctx); err != nil {
		return invitation, code, err
	}
	invitation, err = unitofwork.Change(ctx, u, invitationStream(found.Organization, id),
		func(i tenants.Invitation) ([]tenants.Event, error) { return i.Resend(cmd) })
	if err != nil {
		return invitation, code, err
	}
	return invitation, code, u.Commit(ctx)
}

// Revoke revokes an invitation that the caller may access. It is idempotent.
func (s *Invitations) Revoke(ctx context.Context, request unitofwork.Request, id string) (invitation tenants.Invitation, err error) {
	at := s.work.Now()
	u, found, err := s.begin(ctx, request, id)
	if err != nil {
		return invitation, err
	}
	defer u.Rollback(ctx)
	by, err := u.Role(ctx)
	if err != nil {
		return invitation, err
	}
	invitation, err = unitofwork.Change(ctx, u, invitationStream(found.Organization, id),
		func(i tenants.Invitation) ([]tenants.Event, error) { return i.Revoke(by, at) })
	if err != nil {
		return invitation, err
	}
	return invitation, u.Commit(ctx)
}

// begin opens a unit of work about an invitation that
// the caller may access, who defers the Rollback.
func (s *Invitations) begin(ctx context.Context, request unitofwork.Request, id string) (u *unitofwork.Unit, found tenants.Invitation, err error) {
	if !tenants.IsID(id) {
		return nil, found, fmt.Errorf("invitation %q: %w", id, tenants.ErrNotFound)
	}
	if found, err = s.store.Invitation(ctx, pg.Organization(request.Caller.Organization), id); err != nil {
		return nil, found, err
	}
	u, err = s.work.Begin(ctx, found.Organization, request)
	return u, found, err
}

// List lists the invitations of an organization that the caller may access.
func (s *Invitations) List(ctx context.Context, caller tenants.Caller, organization string, after query.Position,
	limit int) ([]tenants.Invitation, error) {
	if _, err := s.organizations.Organization(ctx, caller, organization); err != nil {
		return nil, err
	}
	return s.store.Invitations(ctx, pg.Organization(caller.Organization), pg.Organization(organization), after, limit)
}

// Capacity is how many open invitations the
// caller's organization has, and may have.
func (s *Invitations) Capacity(ctx context.Context, caller tenants.Caller) (tenants.Capacity, error) {
	return s.work.Capacity(ctx, caller, tenants.CountInvitations, count)
}

func invitationStream(organization, id string) eventstore.Stream {
	return unitofwork.Stream(organization, "invitation", id)
}

// Join adds a member by the code and the address of an invitation, and
// signs them in, by the code alone where passwords are off. It fails with
// tenants.ErrCode, or ErrEmailTaken if a member elsewhere has the address.
func (c *Codes) Join(ctx context.Context, request unitofwork.Request, who Registration) (entry tenants.SignInResult, err error) {
	accept := tenants.Accept{Email: who.Email, Member: memberPrefix + c.work.IDs(), At: c.work.Now()}
	if accept.Code, err = hashOf(tenants.InvitationPrefix, who.Code); err != nil {
		return entry, err
	}
	found, err := c.store.InvitationByCode(ctx, accept.Code)
	if err != nil {
		return entry, codeUnknown(err)
	}
	off, err := c.members.passwordsOff(ctx, c.work.Views, found.Organization)
	if err != nil {
		return entry, err
	}
	if who.Password, err = c.choose(off, who.Password); err != nil {
		return entry, err
	}
	add := registration(who, found.Organization, found.Role, accept.Member, accept.At)
	if err := checkJoin(found, accept, add); err != nil {
		return entry, err
	}
	if add.PasswordHash, err = c.members.hash(ctx, found.Organization, add); err != nil {
		return entry, err
	}
	return c.join(ctx, request, found, accept, add)
}

func (c *Codes) join(ctx context.Context, request unitofwork.Request, found tenants.Invitation, accept tenants.Accept, add tenants.AddMember) (
	entry tenants.SignInResult, err error) {
	u, err := c.work.Begin(ctx, found.Organization, request)
	if err != nil {
		return entry, err
	}
	defer u.Rollback(ctx)
	u.As(tenants.Member{ID: add.ID, Organization: add.Organization, Role: add.Role})
	if err := u.CheckLimits(ctx, found.Organization, counted(tenants.CountMembers)); err != nil {
		return entry, err
	}
	invitation, err := unitofwork.Load[tenants.Invitation](ctx, u, invitationStream(found.Organization, found.ID))
	if err != nil {
		return entry, err
	}
	if accept.ByRole, err = c.roleOf(ctx, u, found.Organization, invitation.State.By); err != nil {
		return entry, err
	}
	events, err := invitation.State.Accept(accept)
	if err != nil {
		return entry, err
	}
	if err := unitofwork.Append(ctx, u, &invitation, events); err != nil {
		return entry, err
	}
	if entry, err = c.addSignedIn(ctx, u, add); err != nil {
		return tenants.SignInResult{}, err
	}
	return entry, u.Commit(ctx)
}

// checkJoin returns the fault of the code, or else
// all faults of the form, before any work is done.
func checkJoin(invitation tenants.Invitation, accept tenants.Accept, add tenants.AddMember) error {
	if err := invitation.Admits(accept.Code, accept.At); err != nil {
		return err
	}
	faults, isInvalid := errors.AsType[tenants.Invalid](add.Check())
	_, err := invitation.Accept(accept)
	if mismatch, wrong := errors.AsType[tenants.Invalid](err); wrong && tenants.IsEmail(accept.Email) {
		faults, isInvalid = append(faults, mismatch...), true
	}
	if isInvalid {
		return faults
	}
	return nil
}

func registration(who Registration, organization string, role tenants.Role, id string, at time.Time) tenants.AddMember {
	return tenants.AddMember{
		ID: id, Organization: organization, Email: who.Email, Name: who.Name, Role: role, Password: who.Password, At: at,
	}
}
