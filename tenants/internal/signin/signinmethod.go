package signin

import (
	"context"
	"errors"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// ErrPasswordsOff means that the member's organization has switched
// passwords off. It is disclosed only after the right one, or in a session.
var ErrPasswordsOff = errors.New("the organization has switched passwords off")

// ErrLastSignInMethod means that a member could no longer sign in.
var ErrLastSignInMethod = errors.New("this is the member's only way to sign in while passwords are switched off")

// checkOtherSignInMethod is ErrLastSignInMethod if
// a member of an organization without passwords
// has no other way to sign in than one passkey.
func (b *base) checkOtherSignInMethod(ctx context.Context, u *unitofwork.Unit, member tenants.Member, without string) error {
	off, err := b.passwordsOff(ctx, u.Reader(), member.Organization)
	if err != nil || !off || b.Config.Provider != nil && member.Identity.Issuer == b.Config.Provider.Issuer {
		return err
	}
	passkeys, err := NewStore(u.Reader()).Passkeys(ctx, pg.Organization(member.Organization), member.ID)
	if err != nil {
		return err
	}
	for _, other := range passkeys {
		if other.ID != without && other.SuspectedAt.IsZero() {
			return nil
		}
	}
	return ErrLastSignInMethod
}
