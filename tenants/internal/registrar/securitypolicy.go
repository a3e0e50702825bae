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
		Organization: organization, LeakedKeys: wanted.LeakedKeys, PlainHTTPKeys: wanted.PlainHTTPKeys, At: r.now(),
	}
	if err := r.reachable(ctx, request.Caller, organization); err != nil {
		return tenants.SecurityPolicy{}, err
	}
	return update(ctx, r, request, may(tenants.SecurityWrite), policyStream(organization),
		func(p tenants.SecurityPolicy) ([]tenants.Event, error) { return p.Set(cmd) })
}

func policyStream(organization string) eventstore.Stream {
	return streamOf(organization, "security-policy", organization)
}
