package registrar

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/postgres"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// ErrRemoved is that of the unit of work.
var ErrRemoved = unitofwork.ErrRemoved

// A turn is a unit of work of what has no room of its own yet.
type turn struct {
	*Registrar
	unit    *unitofwork.Unit
	tx      pgx.Tx
	views   *postgres.Views // as the turn sees them
	request Request
}

// inTurn makes a decision about things of one organization in a unit of work.
func (r *Registrar) inTurn(ctx context.Context, organization string, request Request, decide func(t *turn) error) error {
	u, err := r.Begin(ctx, organization, request)
	if err != nil {
		return err
	}
	defer u.Rollback(ctx)
	if err := decide(&turn{r, u, u.Tx(), postgres.NewViews(u.Reader()), request}); err != nil {
		return err
	}
	return u.Commit(ctx)
}

func (t *turn) as(member tenants.Member) {
	t.unit.As(member)
	t.request = t.unit.Request()
}

func change[S any, P eventstore.Folder[S, tenants.Event]](ctx context.Context, t *turn, stream eventstore.Stream,
	decide func(S) ([]tenants.Event, error)) (S, error) {
	return unitofwork.Change[S, P](ctx, t.unit, stream, decide)
}

func (t *turn) changeSession(ctx context.Context, organization, id string, decide func(tenants.Session) ([]tenants.Event, error)) (tenants.Session, error) {
	return change(ctx, t, streamOf(organization, "session", id), decide)
}

func (t *turn) powers(ctx context.Context) (tenants.Role, error) { return t.unit.Role(ctx) }

func (t *turn) room(ctx context.Context, organization string, what tenants.Countable) error {
	return t.unit.CheckRoom(ctx, organization, unitofwork.Room{Count: postgres.Count, As: []tenants.Countable{what}})
}

// A power is nil for a role that may do something, ErrForbidden else. No power: everybody may.
type power func(tenants.Role) error

// may is the power of the roles with a permission.
func may(p tenants.Permission) power {
	return func(role tenants.Role) error { return unitofwork.Check(role, p) }
}

// update keeps a decision on one stream by a member who has a power now, or by a token.
func update[S any, P eventstore.Folder[S, tenants.Event]](ctx context.Context, r *Registrar, request Request, has power,
	stream eventstore.Stream, decide func(S) ([]tenants.Event, error)) (state S, err error) {
	return create[S, P](ctx, r, request, has, stream, decide)
}

// create is update for something new, of which an organization may have only so many.
func create[S any, P eventstore.Folder[S, tenants.Event]](ctx context.Context, r *Registrar, request Request, has power,
	stream eventstore.Stream, decide func(S) ([]tenants.Event, error), counted ...tenants.Countable) (state S, err error) {
	u, err := r.Begin(ctx, stream.Organization, request)
	if err != nil {
		return state, err
	}
	defer u.Rollback(ctx)
	if request.Role != "" && has != nil {
		role, err := u.Role(ctx)
		if err == nil {
			err = has(role)
		}
		if err != nil {
			return state, err
		}
	}
	state, err = unitofwork.Create[S, P](ctx, u, stream, decide, unitofwork.Room{Count: postgres.Count, As: counted})
	if err != nil {
		return state, err
	}
	return state, u.Commit(ctx)
}

// roleOf is the role in which somebody acts now who handed out a code: a member's own, a service token's, and none for who
// was removed or is revoked. Whoever is neither a member nor a token did it at the server, and may do everything.
func (t *turn) roleOf(ctx context.Context, organization, id string) (tenants.Role, error) {
	if strings.HasPrefix(id, memberPrefix) {
		member, err := t.views.Member(ctx, pg.Organization(organization), id)
		if errors.Is(err, tenants.ErrNotFound) {
			return "", nil
		}
		return member.Role, err
	}
	token, err := t.tokenOf(ctx, organization, id)
	switch {
	case errors.Is(err, tenants.ErrNotFound):
		return tenants.Owner, nil
	case err != nil || token.State() == tenants.Revoked:
		return "", err
	}
	return tenants.Caller{Organization: token.Organization}.Role(), nil
}

// tokenOf returns a service token of an organization, or an operator's, for which the turn leaves the organization for one
// look.
func (t *turn) tokenOf(ctx context.Context, organization, id string) (tenants.ServiceToken, error) {
	token, err := t.views.ServiceToken(ctx, pg.Organization(organization), id)
	if !errors.Is(err, tenants.ErrNotFound) {
		return token, err
	}
	if err := pg.AsSystem(ctx, t.tx); err != nil {
		return token, err
	}
	if token, err = t.views.ServiceToken(ctx, tenants.Installation, id); err != nil && !errors.Is(err, tenants.ErrNotFound) {
		return token, err
	}
	return token, errors.Join(err, pg.AsOrganization(ctx, t.tx, pg.Organization(organization)))
}
