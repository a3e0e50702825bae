package registrar

import (
	"context"
	"fmt"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
)

// CreateOrganization creates an organization; only an operator may.
func (r *Registrar) CreateOrganization(ctx context.Context, request Request, name string, tier tenants.Tier) (tenants.Organization, error) {
	if !request.Caller.Operates() {
		return tenants.Organization{}, fmt.Errorf("create an organization: %w", tenants.ErrForbidden)
	}
	cmd := tenants.CreateOrganization{ID: r.newID(request, organizationPrefix, tenants.Installation), Name: name, Tier: tier, At: r.now()}
	organization, err := update(ctx, r, request, nil, streamOf(cmd.ID, "organization", cmd.ID),
		func(o tenants.Organization) ([]tenants.Event, error) { return o.Create(cmd) })
	return organization, err
}

// Organizations lists the organizations that the caller may know of.
func (r *Registrar) Organizations(ctx context.Context, caller tenants.Caller, after query.Position, limit int) ([]tenants.Organization, error) {
	return r.Views.Organizations(ctx, pg.Organization(caller.Organization), after, limit)
}

// Organization returns an organization that the caller reaches.
func (r *Registrar) Organization(ctx context.Context, caller tenants.Caller, id string) (tenants.Organization, error) {
	if err := r.reachable(ctx, caller, id); err != nil {
		return tenants.Organization{}, err
	}
	return r.Views.Organization(ctx, pg.Organization(caller.Organization), id)
}

// RenameOrganization gives an organization that the caller reaches another name.
func (r *Registrar) RenameOrganization(ctx context.Context, request Request, id, name string) (tenants.Organization, error) {
	cmd := tenants.Rename{Name: name, At: r.now()}
	if err := cmd.Check(); err != nil {
		return tenants.Organization{}, err
	}
	if err := r.reachable(ctx, request.Caller, id); err != nil {
		return tenants.Organization{}, err
	}
	organization, err := update(ctx, r, request, may(tenants.OrganizationWrite), streamOf(id, "organization", id),
		func(o tenants.Organization) ([]tenants.Event, error) { return o.Rename(cmd) })
	return organization, err
}
