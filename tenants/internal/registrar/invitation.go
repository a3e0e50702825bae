package registrar

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
)

// NewInvitation is what a caller says of an invitation that it wants.
type NewInvitation struct {
	Organization string
	Email        string
	Role         tenants.Role
}

// Invite invites somebody to an organization that the caller reaches. The code is in no other place. Whether the address is
// taken in another organization makes no difference: that is told only to whoever joins.
func (r *Registrar) Invite(ctx context.Context, request Request, wanted NewInvitation) (invitation tenants.Invitation, code tenants.Secret, err error) {
	cmd := tenants.Invite{Organization: wanted.Organization, Email: wanted.Email, Role: wanted.Role, By: request.Caller.ID, At: r.now()}
	if err := cmd.Check(); err != nil {
		return invitation, code, err
	}
	if err := r.reachable(ctx, request.Caller, wanted.Organization); err != nil {
		return invitation, code, err
	}
	if code, err = tenants.NewSecret(tenants.InvitationPrefix, r.Random); err != nil {
		return invitation, code, err
	}
	cmd.ID, cmd.Digest = r.newID(request, invitationPrefix, wanted.Organization), code.Digest()
	err = r.inTurn(ctx, wanted.Organization, request, func(t *turn) (err error) {
		if cmd.ByRole, err = t.powers(ctx); err != nil {
			return err
		}
		invitation, err = t.changeInvitation(ctx, wanted.Organization, cmd.ID, func(i tenants.Invitation) ([]tenants.Event, error) {
			events, err := i.Make(cmd)
			if err != nil {
				return nil, err
			}
			if err := t.notYetHere(ctx, wanted.Organization, wanted.Email); err != nil || len(events) == 0 {
				return events, err
			}
			return events, t.room(ctx, wanted.Organization, tenants.CountInvitations)
		})
		return err
	})
	return invitation, code, err
}

// notYetHere refuses an address that a member of the organization has, or that was invited. Whoever invites may see both.
func (t *turn) notYetHere(ctx context.Context, organization, email string) error {
	normal := tenants.NormalEmail(email)
	isMember, err1 := t.views.IsMember(ctx, pg.Organization(organization), normal)
	isInvited, err2 := t.views.IsInvited(ctx, pg.Organization(organization), normal)
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

// ResendInvitation gives an invitation that the caller reaches another code and its whole time again. The code of before
// is void, and the new one in no other place.
func (r *Registrar) ResendInvitation(ctx context.Context, request Request, id string) (invitation tenants.Invitation, code tenants.Secret, err error) {
	if code, err = tenants.NewSecret(tenants.InvitationPrefix, r.Random); err != nil {
		return invitation, code, err
	}
	cmd := tenants.Resend{By: request.Caller.ID, Digest: code.Digest(), At: r.now()}
	invitation, err = r.onInvitation(ctx, request, id, func(i tenants.Invitation, by tenants.Role) ([]tenants.Event, error) {
		cmd.ByRole = by
		return i.Resend(cmd)
	})
	return invitation, code, err
}

// RevokeInvitation takes an invitation back that the caller reaches. Again, it changes nothing.
func (r *Registrar) RevokeInvitation(ctx context.Context, request Request, id string) (tenants.Invitation, error) {
	at := r.now()
	return r.onInvitation(ctx, request, id, func(i tenants.Invitation, by tenants.Role) ([]tenants.Event, error) {
		return i.Revoke(by, at)
	})
}

// onInvitation makes a decision on an invitation that the caller reaches, in the role in which the caller acts.
func (r *Registrar) onInvitation(ctx context.Context, request Request, id string,
	decide func(i tenants.Invitation, by tenants.Role) ([]tenants.Event, error)) (invitation tenants.Invitation, err error) {
	if !tenants.IsID(id) {
		return invitation, fmt.Errorf("invitation %q: %w", id, tenants.ErrNotFound)
	}
	found, err := r.Views.Invitation(ctx, pg.Organization(request.Caller.Organization), id)
	if err != nil {
		return invitation, err
	}
	err = r.inTurn(ctx, found.Organization, request, func(t *turn) error {
		by, err := t.powers(ctx)
		if err != nil {
			return err
		}
		invitation, err = t.changeInvitation(ctx, found.Organization, id, func(i tenants.Invitation) ([]tenants.Event, error) { return decide(i, by) })
		return err
	})
	return invitation, err
}

func (t *turn) changeInvitation(ctx context.Context, organization, id string,
	decide func(tenants.Invitation) ([]tenants.Event, error)) (tenants.Invitation, error) {
	return change(ctx, t, streamOf(organization, "invitation", id), decide)
}

// Invitations lists the invitations of an organization that the caller reaches.
func (r *Registrar) Invitations(ctx context.Context, caller tenants.Caller, organization string, after query.Position,
	limit int) ([]tenants.Invitation, error) {
	if err := r.reachable(ctx, caller, organization); err != nil {
		return nil, err
	}
	return r.Views.Invitations(ctx, pg.Organization(caller.Organization), pg.Organization(organization), after, limit)
}
