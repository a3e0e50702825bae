package people

import (
	"context"
	"errors"
	"time"

	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

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
