package registrar

import (
	"context"
	"errors"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/postgres"
)

// ErrPasswordsOff says that the organization of a member has switched passwords off. It is told only to who has shown the
// right one, or has a session.
var ErrPasswordsOff = errors.New("the organization has switched passwords off")

// ErrLastWay says that a member could not sign in any more.
var ErrLastWay = errors.New("this is the only way in that the member has while passwords are switched off")

// PasswordsOff tells whether an organization has switched passwords off.
func (r *Registrar) PasswordsOff(ctx context.Context, organization string) (bool, error) {
	return passwordsOff(ctx, r.Views, organization)
}

func passwordsOff(ctx context.Context, views *postgres.Views, organization string) (bool, error) {
	policy, err := views.SecurityPolicy(ctx, pg.Organization(organization), pg.Organization(organization))
	return policy.PasswordsOff, err
}

// allowed is ErrPasswordsOff where an organization has switched passwords off.
func allowed(ctx context.Context, views *postgres.Views, organization string) error {
	off, err := passwordsOff(ctx, views, organization)
	if err == nil && off {
		err = ErrPasswordsOff
	}
	return err
}

// keepsAWay is ErrLastWay where a member, in an organization without passwords, has no other way in than one passkey.
func (t *turn) keepsAWay(ctx context.Context, member tenants.Member, without string) error {
	off, err := passwordsOff(ctx, t.views, member.Organization)
	if err != nil || !off || t.Provider != nil && member.Identity.Issuer == t.Provider.Issuer {
		return err
	}
	passkeys, err := t.views.Passkeys(ctx, pg.Organization(member.Organization), member.ID)
	if err != nil {
		return err
	}
	for _, other := range passkeys {
		if other.ID != without && other.SuspectedAt.IsZero() {
			return nil
		}
	}
	return ErrLastWay
}
