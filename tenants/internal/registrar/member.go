package registrar

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
)

// ErrEmailTaken says that a member, of whatever organization, has the address.
var ErrEmailTaken = errors.New("the e-mail address is taken")

// NewMember is what a caller says of a member that it wants.
type NewMember struct {
	Organization string
	Email        string
	Name         string
	Role         tenants.Role
	Password     tenants.Password
}

// AddMember adds a person to an organization that the caller reaches; ErrEmailTaken where somebody has the address.
func (r *Registrar) AddMember(ctx context.Context, request Request, wanted NewMember) (tenants.Member, error) {
	cmd := tenants.AddMember{
		Organization: wanted.Organization, Email: wanted.Email, Name: wanted.Name, Role: wanted.Role,
		Password: wanted.Password, At: r.now(),
	}
	if err := cmd.Check(); err != nil {
		return tenants.Member{}, err
	}
	if err := r.reachable(ctx, request.Caller, wanted.Organization); err != nil {
		return tenants.Member{}, err
	}
	hash, err := r.Passwords.Hash(ctx, wanted.Password)
	if err != nil {
		return tenants.Member{}, err
	}
	cmd.ID, cmd.PasswordHash = r.newID(request, memberPrefix, wanted.Organization), hash
	member, err := eventstore.Update(ctx, r.Events, streamOf(wanted.Organization, "member", cmd.ID), request.metadata(),
		func(m tenants.Member) ([]tenants.Event, error) { return m.Add(cmd) })
	if pg.IsUnique(err) {
		return tenants.Member{}, fmt.Errorf("add member %q: %w", tenants.NormalEmail(wanted.Email), ErrEmailTaken)
	}
	return member, err
}
