package registrar

import (
	"context"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/postgres"
	"github.com/weirlog/weir/tenants/internal/query"
)

// OwnersBeside implements registry.Members.
func (r *Registrar) OwnersBeside(ctx context.Context, in *query.Reader, organization pg.Organization) (int, error) {
	return postgres.NewViews(in).OwnersBeside(ctx, organization, r.Ways(), "")
}

// MembersBeside implements registry.Members.
func (r *Registrar) MembersBeside(ctx context.Context, organization pg.Organization) (able, all int, err error) {
	if able, err = r.Views.MembersBeside(ctx, organization, r.Ways()); err != nil {
		return 0, 0, err
	}
	all, err = postgres.Count(ctx, r.Views.Reader, organization, tenants.CountMembers, r.Now())
	return able, all, err
}
