package signin

import (
	"context"
	"time"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// Access admits members and ends their access, in the caller's unit of work.
type Access struct{}

// StartSession lets a member in.
func (*Access) StartSession(ctx context.Context, u *unitofwork.Unit, member tenants.Member, method tenants.SignInMethod) (tenants.SignInResult, error) {
	return start(ctx, u, member, method)
}

// ChangeRoles gives the open sessions of a member a role.
func (*Access) ChangeRoles(ctx context.Context, u *unitofwork.Unit, member tenants.Member, role tenants.Role, at time.Time) error {
	return eachSession(ctx, u, member, "", func(s tenants.Session) ([]tenants.Event, error) { return s.ChangeRole(role, at) })
}

// EndSessions ends the open sessions of a member, and forgets their browsers.
func (*Access) EndSessions(ctx context.Context, u *unitofwork.Unit, member tenants.Member, reason string) error {
	return endAll(ctx, u, member, reason, "", nil)
}

// RemovePasskeys ends all passkeys of a member.
func (*Access) RemovePasskeys(ctx context.Context, u *unitofwork.Unit, member tenants.Member) error {
	passkeys, err := NewStore(u.Reader()).Passkeys(ctx, pg.Organization(member.Organization), member.ID)
	for _, each := range passkeys {
		if err == nil {
			err = remove(ctx, u, each)
		}
	}
	return err
}
