package registrar

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/eventstore/eventstorepg"
	"github.com/weirlog/weir/tenants"
)

// A power is nil for a role that may do something, ErrForbidden else.
type power func(tenants.Role) error

// may is the power of the roles with a permission.
func may(p tenants.Permission) power {
	return func(role tenants.Role) error {
		if !role.May(p) {
			return fmt.Errorf("%s as %q: %w", p, role, tenants.ErrForbidden)
		}
		return nil
	}
}

// update keeps a decision on one stream. A member has to have the power in the role that is in force at that moment: the
// one in their session is old until the news of another one, or of their removal, is here.
func update[S any, P eventstore.Folder[S, tenants.Event]](ctx context.Context, r *Registrar, request Request, has power,
	stream eventstore.Stream, decide func(S) ([]tenants.Event, error)) (state S, err error) {
	if request.Role == "" {
		return eventstore.Update[S, tenants.Event, P](ctx, r.Events, stream, request.metadata(), decide)
	}
	err = r.Events.InTurn(ctx, stream.Organization, func(tx pgx.Tx) error {
		now, err := r.inForce(ctx, tx, request, has)
		if err != nil {
			return err
		}
		state, _, err = eventstorepg.UpdateTx[S, tenants.Event, P](ctx, tx, r.Events, stream, now.metadata(), decide)
		return err
	})
	return state, err
}

// inForce is a request in the role that its caller has until the turn of tx ends, and that has a power. Who is no member
// was asked before what they may do.
func (r *Registrar) inForce(ctx context.Context, tx pgx.Tx, request Request, has power) (Request, error) {
	if request.Role == "" {
		return request, nil
	}
	t := &turn{Registrar: r, tx: tx, views: r.Views.In(tx), request: request}
	role, err := t.powers(ctx)
	if err != nil {
		return request, err
	}
	request.Role = role
	return request, has(role)
}
