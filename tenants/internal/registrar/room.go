package registrar

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/eventstore/eventstorepg"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/postgres"
)

// create is update for something new, of which an organization may have only so many. They are counted within the turn, so
// that two who come at once can't both have the last place; whoever asks again for what is there already needs none.
func create[S any, P eventstore.Folder[S, tenants.Event]](ctx context.Context, r *Registrar, request Request, has power,
	stream eventstore.Stream, decide func(S) ([]tenants.Event, error), counted ...tenants.Countable) (state S, err error) {
	err = r.Events.InTurn(ctx, stream.Organization, func(tx pgx.Tx) error {
		now, err := r.inForce(ctx, tx, request, has)
		if err != nil {
			return err
		}
		state, _, err = eventstorepg.UpdateTx[S, tenants.Event, P](ctx, tx, r.Events, stream, now.metadata(),
			func(before S) ([]tenants.Event, error) {
				events, err := decide(before)
				if err != nil || len(events) == 0 {
					return nil, err
				}
				return events, r.room(ctx, r.Views.In(tx), stream.Organization, counted...)
			})
		return err
	})
	return state, err
}

// room is tenants.LimitReached where an organization may have no more of something. The installation has no limits.
func (r *Registrar) room(ctx context.Context, views *postgres.Views, organization string, counted ...tenants.Countable) error {
	if organization == tenants.Installation {
		return nil
	}
	for _, what := range counted {
		have, err := views.Count(ctx, pg.Organization(organization), what, r.now())
		if err != nil {
			return err
		}
		if err := r.Limits.Room(what, have); err != nil {
			return err
		}
	}
	return nil
}

// A Room is how many of something an organization has, and may have.
type Room struct {
	What        tenants.Countable
	Have, Limit int
}

// Full tells whether there can be no more.
func (r Room) Full() bool { return r.Have >= r.Limit }

// RoomFor says how many of something the organization of a caller has, and may have.
func (r *Registrar) RoomFor(ctx context.Context, caller tenants.Caller, what tenants.Countable) (Room, error) {
	have, err := r.Views.Count(ctx, pg.Organization(caller.Organization), what, r.now())
	return Room{what, have, r.Limits.Of(what)}, err
}
