package registrar

import (
	"context"
	"time"

	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/postgres"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// Beside is what signing in does in a unit of work of people: it implements people.SignIns.
type Beside struct{ registrar *Registrar }

// Beside returns what the registrar does in others' units of work.
func (r *Registrar) Beside() Beside { return Beside{r} }

func (b Beside) in(u *unitofwork.Unit) *turn {
	return &turn{b.registrar, u, u.Tx(), postgres.NewViews(u.Reader()), u.Request()}
}

// StartSession lets a member in.
func (b Beside) StartSession(ctx context.Context, u *unitofwork.Unit, member tenants.Member, method tenants.SignInMethod) (tenants.Entry, error) {
	return b.in(u).startSession(ctx, member, method)
}

// ChangeRoles gives the open sessions of a member a role.
func (b Beside) ChangeRoles(ctx context.Context, u *unitofwork.Unit, member tenants.Member, role tenants.Role, at time.Time) error {
	return b.in(u).eachSession(ctx, member, "", func(s tenants.Session) ([]tenants.Event, error) { return s.ChangeRole(role, at) })
}

// EndSessions ends the open sessions of a member, and makes strangers of their browsers.
func (b Beside) EndSessions(ctx context.Context, u *unitofwork.Unit, member tenants.Member, reason string) error {
	t := b.in(u)
	if err := t.endSessions(ctx, member, reason, ""); err != nil {
		return err
	}
	return t.forgetDevices(ctx, member, nil)
}

// RemovePasskeys ends all passkeys of a member.
func (b Beside) RemovePasskeys(ctx context.Context, u *unitofwork.Unit, member tenants.Member) error {
	return b.in(u).removePasskeys(ctx, member)
}
