package registrar

import (
	"context"

	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/password"
)

// uncommonOf refuses a password of a member that is among the first that anybody would try who knows them and their
// organization.
func (r *Registrar) uncommonOf(ctx context.Context, chosen tenants.Password, member tenants.Member) error {
	found, err := r.Views.Organization(ctx, tenants.Installation, member.Organization)
	if err != nil {
		return err
	}
	return password.CheckCommon(chosen, found.Name, member.Email, member.Name)
}
