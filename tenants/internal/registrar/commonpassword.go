package registrar

import (
	"context"

	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/password"
)

// uncommon refuses a password of a member that is among the first that anybody would try who knows them and their
// organization.
func (r *Registrar) uncommon(ctx context.Context, chosen tenants.Password, organization, email, name string) error {
	found, err := r.Views.Organization(ctx, tenants.Installation, organization)
	if err != nil {
		return err
	}
	return password.CheckCommon(chosen, found.Name, email, name)
}

// uncommonOf is uncommon for somebody who is a member.
func (r *Registrar) uncommonOf(ctx context.Context, chosen tenants.Password, member tenants.Member) error {
	return r.uncommon(ctx, chosen, member.Organization, member.Email, member.Name)
}
