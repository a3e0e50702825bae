package registrar

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/eventstore"
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

func change[S any, P eventstore.Folder[S, tenants.Event]](ctx context.Context, t *turn, stream eventstore.Stream,
	decide func(S) ([]tenants.Event, error)) (S, error) {
	return unitofwork.Change[S, P](ctx, t.unit, stream, decide)
}

func (t *turn) changeSession(ctx context.Context, organization, id string, decide func(tenants.Session) ([]tenants.Event, error)) (tenants.Session, error) {
	return change(ctx, t, streamOf(organization, "session", id), decide)
}

func (t *turn) powers(ctx context.Context) (tenants.Role, error) { return t.unit.Role(ctx) }

// update keeps a decision on one stream.
func update[S any, P eventstore.Folder[S, tenants.Event]](ctx context.Context, r *Registrar, request Request, stream eventstore.Stream,
	decide func(S) ([]tenants.Event, error)) (state S, err error) {
	u, err := r.Begin(ctx, stream.Organization, request)
	if err != nil {
		return state, err
	}
	defer u.Rollback(ctx)
	if state, err = unitofwork.Change[S, P](ctx, u, stream, decide); err != nil {
		return state, err
	}
	return state, u.Commit(ctx)
}

func (t *turn) changeMember(ctx context.Context, member tenants.Member, decide func(tenants.Member) ([]tenants.Event, error)) (tenants.Member, error) {
	return change(ctx, t, streamOf(member.Organization, "member", member.ID), decide)
}
