package registrar

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/weirlog/weir/tenants"
)

// A Newcomer is what somebody says of themselves who comes in by a code.
type Newcomer struct {
	Code     string // as it was pasted
	Email    string
	Name     string
	Password tenants.Password
}

// hashOf is the hash of a code that somebody pasted; tenants.ErrCode where that can be none.
func hashOf(prefix, code string) (string, error) {
	secret, err := tenants.ParseSecret(prefix, strings.TrimSpace(code))
	if err != nil {
		return "", tenants.ErrCode
	}
	return secret.Digest().Hash, nil
}

// Join makes somebody a member who holds the code of an invitation and names its address, and lets them in, by the code
// alone where the organization has switched passwords off. It fails with
// tenants.ErrCode, or with ErrEmailTaken where a member of another organization has the address.
func (r *Registrar) Join(ctx context.Context, request Request, who Newcomer) (entry tenants.Entry, err error) {
	accept := tenants.Accept{Email: who.Email, Member: memberPrefix + r.IDs(), At: r.now()}
	if accept.Code, err = hashOf(tenants.InvitationPrefix, who.Code); err != nil {
		return entry, err
	}
	found, err := r.Views.InvitationByCode(ctx, accept.Code)
	if err != nil {
		return entry, codeUnknown(err)
	}
	off, err := r.PasswordsOff(ctx, found.Organization)
	if err != nil {
		return entry, err
	}
	if who.Password, err = r.choose(off, who.Password); err != nil {
		return entry, err
	}
	add := newcomer(who, found.Organization, found.Role, accept.Member, accept.At)
	if err := checkJoin(found, accept, add); err != nil {
		return entry, err
	}
	if err := r.uncommon(ctx, who.Password, found.Organization, who.Email, who.Name); err != nil {
		return entry, err
	}
	if add.PasswordHash, err = r.Passwords.Hash(ctx, known(found.Organization), who.Password); err != nil {
		return entry, err
	}
	err = r.inTurn(ctx, found.Organization, request, func(t *turn) (err error) {
		t.as(tenants.Member{ID: add.ID, Organization: add.Organization, Role: add.Role})
		if err := t.room(ctx, found.Organization, tenants.CountMembers); err != nil {
			return err
		}
		_, err = t.changeInvitation(ctx, found.Organization, found.ID, func(i tenants.Invitation) (_ []tenants.Event, err error) {
			if accept.ByRole, err = t.roleOf(ctx, i.Organization, i.By); err != nil {
				return nil, err
			}
			return i.Accept(accept)
		})
		if err != nil {
			return err
		}
		entry, err = t.letIn(ctx, add)
		return err
	})
	return entry, err
}

// checkJoin says what is wrong before any work is done: with the code, or else with what was typed, all of it.
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

func codeUnknown(err error) error {
	if errors.Is(err, tenants.ErrNotFound) {
		return tenants.ErrCode
	}
	return err
}

func newcomer(who Newcomer, organization string, role tenants.Role, id string, at time.Time) tenants.AddMember {
	return tenants.AddMember{
		ID: id, Organization: organization, Email: who.Email, Name: who.Name, Role: role, Password: who.Password, At: at,
	}
}

// letIn adds a member and starts their first session.
func (t *turn) letIn(ctx context.Context, add tenants.AddMember) (entry tenants.Entry, err error) {
	member, err := change(ctx, t, streamOf(add.Organization, "member", add.ID), func(m tenants.Member) ([]tenants.Event, error) { return m.Add(add) })
	if err != nil {
		return entry, emailTaken(err, add.Email)
	}
	off, err := passwordsOff(ctx, t.views, add.Organization)
	if err != nil {
		return entry, err
	}
	if off {
		return t.startSession(ctx, member, tenants.ByCode)
	}
	return t.startSession(ctx, member, tenants.ByPassword)
}
