package registrar

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
)

// ErrPassword says that the password that somebody has shown is not the member's.
var ErrPassword = errors.New("the password is not the member's")

// ChangePassword gives the caller, who shows the password of before, another one, and ends the caller's sessions but the
// one called session. It fails with ErrPassword.
func (r *Registrar) ChangePassword(ctx context.Context, request Request, session string, before, password tenants.Password) error {
	cmd := tenants.ChangePassword{Password: password, At: r.now()}
	if err := cmd.Check(); err != nil {
		return err
	}
	member, err := r.Views.Member(ctx, pg.Organization(request.Caller.Organization), request.Caller.ID)
	if err == nil {
		err = allowed(ctx, r.Views, member.Organization)
	}
	if err != nil {
		return err
	}
	if err := r.uncommonOf(ctx, password, member); err != nil {
		return err
	}
	right, err := r.Passwords.Matches(ctx, askerOf(request), member.PasswordHash, before)
	if err == nil && !right {
		err = ErrPassword
	}
	if err != nil {
		return fmt.Errorf("change the password of %q: %w", member.ID, err)
	}
	if cmd.PasswordHash, err = r.Passwords.Hash(ctx, askerOf(request), password); err != nil {
		return err
	}
	cmd.Before = member.PasswordHash
	return r.inTurn(ctx, member.Organization, request, func(t *turn) error {
		_, err := t.changeMember(ctx, member, func(m tenants.Member) ([]tenants.Event, error) { return m.ChangePassword(cmd) })
		if errors.Is(err, tenants.ErrNotFound) {
			return ErrPassword // got another one while this one was compared
		}
		if err != nil {
			return err
		}
		if err := t.endSessions(ctx, member, "the password was changed", session); err != nil {
			return err
		}
		return t.forgetDevices(ctx, member, request.Devices)
	})
}

// IssueResetCode draws a code with which a member that the caller reaches, and manages, sets another password. The code is
// in no other place, and the one of before is void.
func (r *Registrar) IssueResetCode(ctx context.Context, request Request, id string) (member tenants.Member, code tenants.Secret, err error) {
	if code, err = tenants.NewSecret(tenants.ResetPrefix, r.Random); err != nil {
		return member, code, err
	}
	err = r.manage(ctx, request, id, func(t *turn, found tenants.Member) error {
		by, err := t.powers(ctx)
		if err != nil {
			return err
		}
		cmd := tenants.IssueResetCode{By: request.Caller.ID, ByRole: by, Digest: code.Digest(), At: t.now()}
		member, err = t.changeMember(ctx, found, func(m tenants.Member) ([]tenants.Event, error) { return m.IssueResetCode(cmd) })
		return err
	})
	return member, code, err
}

// IssueResetCodeFor is IssueResetCode for the member of whatever organization with an address, asked for at the server.
func (r *Registrar) IssueResetCodeFor(ctx context.Context, request Request, email string) (tenants.Member, tenants.Secret, error) {
	found, err := r.member(ctx, email)
	if err != nil {
		return tenants.Member{}, tenants.Secret{}, err
	}
	return r.IssueResetCode(ctx, request, found.ID)
}

// ResetPassword gives the member for whom a code is out another password, and leaves nothing else that let anybody in as
// the member: it ends their sessions, removes their passkeys, and forgets who they are at the identity provider. Where the
// organization has switched passwords off it lets the member in instead, who then adds a passkey; else the entry is empty.
// It fails with tenants.ErrCode.
func (r *Registrar) ResetPassword(ctx context.Context, request Request, code string, password tenants.Password) (entry tenants.Entry, err error) {
	cmd := tenants.ChangePassword{Password: password, At: r.now()}
	if cmd.Code, err = hashOf(tenants.ResetPrefix, code); err != nil {
		return entry, err
	}
	member, err := r.Views.MemberByResetCode(ctx, cmd.Code)
	if err != nil {
		return entry, codeUnknown(err)
	}
	off, err := r.PasswordsOff(ctx, member.Organization)
	if err != nil {
		return entry, err
	}
	if cmd.Password, err = r.choose(off, password); err != nil {
		return entry, err
	}
	if _, err := member.ResetPassword(cmd); err != nil {
		return entry, err
	}
	if err := r.uncommonOf(ctx, cmd.Password, member); err != nil {
		return entry, err
	}
	if cmd.PasswordHash, err = r.Passwords.Hash(ctx, known(member.Organization), cmd.Password); err != nil {
		return entry, err
	}
	err = r.inTurn(ctx, member.Organization, request, func(t *turn) error {
		t.as(member)
		_, err := t.changeMember(ctx, member, func(m tenants.Member) (_ []tenants.Event, err error) {
			if cmd.IssuerRole, err = t.roleOf(ctx, m.Organization, m.Reset.By); err != nil {
				return nil, err
			}
			return m.ResetPassword(cmd)
		})
		if err != nil {
			return err
		}
		if err := t.endSessions(ctx, member, "the password was reset", ""); err != nil {
			return err
		}
		if err := t.forgetDevices(ctx, member, nil); err != nil {
			return err
		}
		if err := t.removePasskeys(ctx, member); err != nil || !off {
			return err
		}
		entry, err = t.startSession(ctx, member, tenants.ByCode)
		return err
	})
	return entry, err
}

// choose is the password of somebody who has a code: the one that they chose, or nobody's where passwords are off.
func (r *Registrar) choose(off bool, chosen tenants.Password) (tenants.Password, error) {
	if off {
		return r.nobodys()
	}
	return chosen, nil
}
