package registrar

import (
	"context"
	"fmt"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/postgres"
)

// CreateOrganization creates an organization; only an operator may.
func (r *Registrar) CreateOrganization(ctx context.Context, request Request, name string, tier tenants.Tier) (tenants.Organization, error) {
	if !request.Caller.Operates() {
		return tenants.Organization{}, fmt.Errorf("create an organization: %w", tenants.ErrForbidden)
	}
	cmd := tenants.CreateOrganization{ID: r.newID(request, organizationPrefix, tenants.Installation), Name: name, Tier: tier, At: r.now()}
	organization, err := eventstore.Update(ctx, r.Events, streamOf(cmd.ID, "organization", cmd.ID), request.metadata(),
		func(o tenants.Organization) ([]tenants.Event, error) { return o.Create(cmd) })
	r.Gate.Wake()
	return organization, err
}

// Organizations lists the organizations that the caller may know of.
func (r *Registrar) Organizations(ctx context.Context, caller tenants.Caller, after postgres.Position, limit int) ([]tenants.Organization, error) {
	return r.Views.Organizations(ctx, caller.Organization, after, limit)
}
