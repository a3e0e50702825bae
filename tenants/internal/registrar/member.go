package registrar

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
)

// ErrEmailTaken says that a member, of whatever organization, has the address.
var ErrEmailTaken = errors.New("the e-mail address is taken")

// NewMember is what a caller says of a member that it wants.
type NewMember struct {
	Organization string
	Email        string
	Name         string
	Role         tenants.Role
	Password     tenants.Password
}

// AddMember adds a person with a password; only an operator may, because whoever is told that an address is taken learns
// of members elsewhere. Everybody else invites. ErrEmailTaken where somebody has the address.
func (r *Registrar) AddMember(ctx context.Context, request Request, wanted NewMember) (tenants.Member, error) {
	if !request.Caller.Operates() {
		return tenants.Member{}, fmt.Errorf("add a member with a password: %w", tenants.ErrForbidden)
	}
	cmd := tenants.AddMember{
		Organization: wanted.Organization, Email: wanted.Email, Name: wanted.Name, Role: wanted.Role,
		Password: wanted.Password, At: r.now(),
	}
	if err := cmd.Check(); err != nil {
		return tenants.Member{}, err
	}
	if err := r.reachable(ctx, request.Caller, wanted.Organization); err != nil {
		return tenants.Member{}, err
	}
	if err := r.uncommon(ctx, wanted.Password, wanted.Organization, wanted.Email, wanted.Name); err != nil {
		return tenants.Member{}, err
	}
	hash, err := r.Passwords.Hash(ctx, askerOf(request), wanted.Password)
	if err != nil {
		return tenants.Member{}, err
	}
	cmd.ID, cmd.PasswordHash = r.newID(request, memberPrefix, wanted.Organization), hash
	member, err := create(ctx, r, request, may(tenants.MembersManage), streamOf(wanted.Organization, "member", cmd.ID),
		func(m tenants.Member) ([]tenants.Event, error) { return m.Add(cmd) }, tenants.CountMembers)
	return member, emailTaken(err, wanted.Email)
}

// emailTaken is ErrEmailTaken where a member could not be added because somebody has the address.
func emailTaken(err error, email string) error {
	if pg.IsUnique(err) {
		return fmt.Errorf("add member %q: %w", tenants.NormalEmail(email), ErrEmailTaken)
	}
	return err
}

// Members lists the members of an organization that the caller reaches.
func (r *Registrar) Members(ctx context.Context, caller tenants.Caller, organization string, after query.Position, limit int) ([]tenants.Member, error) {
	if err := r.reachable(ctx, caller, organization); err != nil {
		return nil, err
	}
	return r.Views.Members(ctx, pg.Organization(caller.Organization), pg.Organization(organization), after, limit)
}

// ChangeRole gives a member that the caller reaches another role, which their sessions have when it returns, unless the
// broker is slow or away. It fails with tenants.ErrLastOwner where nobody else is owner.
func (r *Registrar) ChangeRole(ctx context.Context, request Request, id string, role tenants.Role) (member tenants.Member, err error) {
	cmd := tenants.ChangeRole{Role: role, At: r.now()}
	if err := cmd.Check(); err != nil {
		return member, err
	}
	err = r.manage(ctx, request, id, func(t *turn, found tenants.Member) (err error) {
		if cmd.By, cmd.OtherOwners, err = t.over(ctx, found); err != nil {
			return err
		}
		member, err = t.changeMember(ctx, found, func(m tenants.Member) ([]tenants.Event, error) { return m.ChangeRole(cmd) })
		if err != nil {
			return err
		}
		err = t.eachSession(ctx, member, "", func(s tenants.Session) ([]tenants.Event, error) { return s.ChangeRole(role, cmd.At) })
		if err != nil {
			return err
		}
		return t.withdraw(ctx, member, role)
	})
	return member, err
}

// RemoveMember removes a member that the caller reaches. When it returns, their sessions have ended everywhere, unless the
// broker is slow or away. Again, it changes nothing. It fails with tenants.ErrLastOwner where nobody else is owner.
func (r *Registrar) RemoveMember(ctx context.Context, request Request, id string) (member tenants.Member, err error) {
	cmd := tenants.RemoveMember{At: r.now()}
	err = r.manage(ctx, request, id, func(t *turn, found tenants.Member) (err error) {
		if cmd.By, cmd.OtherOwners, err = t.over(ctx, found); err != nil {
			return err
		}
		member, err = t.changeMember(ctx, found, func(m tenants.Member) ([]tenants.Event, error) { return m.Remove(cmd) })
		if err != nil {
			return err
		}
		if err := t.endSessions(ctx, member, "the member was removed", ""); err != nil {
			return err
		}
		if err := t.forgetDevices(ctx, member, nil); err != nil {
			return err
		}
		return t.withdraw(ctx, member, "")
	})
	return member, err
}

// manage makes a decision about a member that the caller reaches, who may have been removed.
func (r *Registrar) manage(ctx context.Context, request Request, id string, decide func(t *turn, found tenants.Member) error) error {
	if !tenants.IsID(id) {
		return fmt.Errorf("member %q: %w", id, tenants.ErrNotFound)
	}
	found, err := r.Views.MemberEver(ctx, pg.Organization(request.Caller.Organization), id)
	if err != nil {
		return err
	}
	return r.inTurn(ctx, found.Organization, request, func(t *turn) error { return decide(t, found) })
}

// over is what it takes to decide about a member: in which role the caller acts, and how many owners there are beside the
// member. Both stay true until the turn ends, so that of two owners who demote each other one is refused.
func (t *turn) over(ctx context.Context, member tenants.Member) (by tenants.Role, otherOwners int, err error) {
	if by, err = t.powers(ctx); err != nil {
		return by, 0, err
	}
	off, err := passwordsOff(ctx, t.views, member.Organization)
	if err == nil && off { // only those count who could come in
		otherOwners, err = t.views.OwnersBeside(ctx, pg.Organization(member.Organization), t.Ways(), member.ID)
	} else if err == nil {
		otherOwners, err = t.views.OtherOwners(ctx, pg.Organization(member.Organization), member.ID)
	}
	return by, otherOwners, err
}

func (t *turn) changeMember(ctx context.Context, member tenants.Member, decide func(tenants.Member) ([]tenants.Event, error)) (tenants.Member, error) {
	return change(ctx, t, streamOf(member.Organization, "member", member.ID), decide)
}

// withdraw takes back the open invitations of a member that somebody in the member's new role could not make: else a
// member who is to go could let somebody in after that.
func (t *turn) withdraw(ctx context.Context, member tenants.Member, role tenants.Role) error {
	invitations, err := t.views.InvitationsBy(ctx, pg.Organization(member.Organization), member.ID)
	if err != nil {
		return err
	}
	for _, invitation := range invitations {
		if role.MayInvite(invitation.Role) {
			continue
		}
		_, err := change(ctx, t, streamOf(member.Organization, "invitation", invitation.ID),
			func(i tenants.Invitation) ([]tenants.Event, error) { return i.Revoke(tenants.Owner, t.now()) })
		if err != nil {
			return err
		}
	}
	return nil
}
