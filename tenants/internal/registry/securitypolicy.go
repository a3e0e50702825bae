package registry

import (
	"context"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// Members counts members by how they can sign in.
type Members interface {
	// OwnersWithoutPassword is how many owners of an
	// organization can sign in without a password.
	OwnersWithoutPassword(ctx context.Context, in *query.Reader, organization pg.Organization) (int, error)
	// MembersWithoutPassword is how many members can, and how many there are.
	MembersWithoutPassword(ctx context.Context, organization pg.Organization) (able, all int, err error)
}

// Policies decides about security policies.
// Its errors are those of unitofwork.Writer.
type Policies struct {
	work          *unitofwork.Writer
	store         Store
	organizations *Service
	members       Members
}

// NewPolicies returns the policies of organizations with members.
func NewPolicies(organizations *Service, members Members) *Policies {
	return &Policies{organizations.work, organizations.store, organizations, members}
}

// NewPolicy is a requested security policy.
type NewPolicy struct {
	LeakedKeys    tenants.LeakedPolicy
	PlainHTTPKeys tenants.PlainHTTPPolicy
	PasswordsOff  *bool // nil: unchanged
}

// Policy returns the policy of an organization that the caller may access.
func (p *Policies) Policy(ctx context.Context, caller tenants.Caller, organization string) (tenants.SecurityPolicy, error) {
	if _, err := p.organizations.Organization(ctx, caller, organization); err != nil {
		return tenants.SecurityPolicy{}, err
	}
	return p.store.SecurityPolicy(ctx, pg.Organization(caller.Organization), pg.Organization(organization))
}

// Set sets the policy of an organization that the caller may access.
func (p *Policies) Set(ctx context.Context, request unitofwork.Request, organization string, wanted NewPolicy) (policy tenants.SecurityPolicy, err error) {
	cmd := tenants.SetSecurityPolicy{
		Organization: organization, LeakedKeys: wanted.LeakedKeys, PlainHTTPKeys: wanted.PlainHTTPKeys, PasswordsOff: wanted.PasswordsOff, At: p.work.Now(),
	}
	if _, err := p.organizations.Organization(ctx, request.Caller, organization); err != nil {
		return policy, err
	}
	u, err := p.work.Begin(ctx, organization, request)
	if err != nil {
		return policy, err
	}
	defer u.Rollback(ctx)
	if cmd.By, err = u.Role(ctx); err != nil {
		return policy, err
	}
	if err := unitofwork.Check(cmd.By, tenants.SecurityWrite); err != nil {
		return policy, err
	}
	if cmd.OwnersWithoutPassword, err = p.members.OwnersWithoutPassword(ctx, u.Reader(), pg.Organization(organization)); err != nil {
		return policy, err
	}
	policy, err = unitofwork.Change(ctx, u, unitofwork.Stream(organization, "security-policy", organization),
		func(p tenants.SecurityPolicy) ([]tenants.Event, error) { return p.Set(cmd) })
	if err != nil {
		return policy, err
	}
	return policy, u.Commit(ctx)
}

// AllowPasswords switches an organization's passwords
// on at the server, as its people may be locked out.
func (p *Policies) AllowPasswords(ctx context.Context, request unitofwork.Request, organization string) error {
	policy, err := p.Policy(ctx, request.Caller, organization)
	if err != nil {
		return err
	}
	on := false
	_, err = p.Set(ctx, request, organization, NewPolicy{LeakedKeys: policy.LeakedKeys, PlainHTTPKeys: policy.PlainHTTPKeys, PasswordsOff: &on})
	return err
}
