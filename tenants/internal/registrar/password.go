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
