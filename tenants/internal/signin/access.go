package signin

import (
	"context"
	"time"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// Access starts and ends members' access, in the caller's unit of work.
type Access struct{}

// StartSession starts a member's session.
func (*Access) StartSession(ctx context.Context, u *unitofwork.Unit, member tenants.Member, method tenants.SignInMethod) (tenants.SignInResult, error) {
	return start(ctx, u, member, method)
}

// ChangeRoles sets the role of a member's open sessions.
func (*Access) ChangeRoles(ctx context.Context, u *unitofwork.Unit, member tenants.Member, role tenants.Role, at time.Time) error {
	return eachSession(ctx, u, member, "", func(s tenants.Session) ([]tenants.Event, error) { return s.ChangeRole(role, at) })
}

// EndSessions ends a member's open sessions, and forgets their browsers.
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
