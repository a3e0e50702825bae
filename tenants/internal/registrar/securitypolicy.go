package registrar

import (
	"context"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
)

// NewSecurityPolicy is what a caller wants to happen when somebody else may have a key.
type NewSecurityPolicy struct {
	LeakedKeys    tenants.LeakedPolicy
	PlainHTTPKeys tenants.PlainHTTPPolicy
	PasswordsOff  *bool // nil: as it is
}

// SecurityPolicy returns the policy of an organization that the caller reaches.
func (r *Registrar) SecurityPolicy(ctx context.Context, caller tenants.Caller, organization string) (tenants.SecurityPolicy, error) {
	if err := r.reachable(ctx, caller, organization); err != nil {
		return tenants.SecurityPolicy{}, err
	}
	return r.Views.SecurityPolicy(ctx, pg.Organization(caller.Organization), pg.Organization(organization))
}

// SetSecurityPolicy sets the policy of an organization that the caller reaches.
func (r *Registrar) SetSecurityPolicy(ctx context.Context, request Request, organization string, wanted NewSecurityPolicy) (tenants.SecurityPolicy, error) {
	cmd := tenants.SetSecurityPolicy{
		Organization: organization, LeakedKeys: wanted.LeakedKeys, PlainHTTPKeys: wanted.PlainHTTPKeys, PasswordsOff: wanted.PasswordsOff, At: r.now(),
	}
	if err := r.reachable(ctx, request.Caller, organization); err != nil {
		return tenants.SecurityPolicy{}, err
	}
	var policy tenants.SecurityPolicy
	err := r.inTurn(ctx, organization, request, func(t *turn) (err error) {
		if cmd.By, err = t.powers(ctx); err != nil {
			return err
		}
		if err := may(tenants.SecurityWrite)(cmd.By); err != nil {
			return err
		}
		if cmd.OwnersBeside, err = t.views.OwnersBeside(ctx, pg.Organization(organization), r.Ways(), ""); err != nil {
			return err
		}
		policy, err = change(ctx, t, policyStream(organization), func(p tenants.SecurityPolicy) ([]tenants.Event, error) { return p.Set(cmd) })
		return err
	})
	return policy, err
}

// AllowPasswords switches passwords on again for an organization, whose people may be locked out, asked for at the server.
func (r *Registrar) AllowPasswords(ctx context.Context, request Request, organization string) error {
	policy, err := r.SecurityPolicy(ctx, request.Caller, organization)
	if err != nil {
		return err
	}
	on := false
	_, err = r.SetSecurityPolicy(ctx, request, organization,
		NewSecurityPolicy{LeakedKeys: policy.LeakedKeys, PlainHTTPKeys: policy.PlainHTTPKeys, PasswordsOff: &on})
	return err
}

func policyStream(organization string) eventstore.Stream {
	return streamOf(organization, "security-policy", organization)
}
