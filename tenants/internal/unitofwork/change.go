package unitofwork

import (
	"context"
	"time"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
)

// An Aggregate is the state of a stream, in a unit of work.
type Aggregate[S any] struct {
	State   S
	stream  eventstore.Stream
	version int64
}

// Load reads the state of a stream; its zero value if there is none.
func Load[S any, P eventstore.Folder[S, tenants.Event]](ctx context.Context, u *Unit, stream eventstore.Stream) (Aggregate[S], error) {
	history, err := u.Events.ReadTx(ctx, u.tx, stream)
	return Aggregate[S]{eventstore.Fold[S, tenants.Event, P](history), stream, eventstore.VersionOf(history)}, err
}

// Append stores what was decided about an aggregate, and applies it.
func Append[S any, P eventstore.Folder[S, tenants.Event]](ctx context.Context, u *Unit, aggregate *Aggregate[S], events []tenants.Event) error {
	for _, event := range events {
		P(&aggregate.State).Apply(event)
	}
	before := aggregate.version
	aggregate.version += int64(len(events))
	return u.append(ctx, aggregate.stream, before, aggregate.State, events)
}

// Change loads an aggregate, and stores what
// decide returns. It returns the new state.
func Change[S any, P eventstore.Folder[S, tenants.Event]](ctx context.Context, u *Unit, stream eventstore.Stream,
	decide func(S) ([]tenants.Event, error)) (S, error) {
	return Create[S, P](ctx, u, stream, decide, Counted{})
}

// Create is Change for something new, which counted
// limits. A repeated request is not counted.
func Create[S any, P eventstore.Folder[S, tenants.Event]](ctx context.Context, u *Unit, stream eventstore.Stream,
	decide func(S) ([]tenants.Event, error), counted Counted) (S, error) {
	aggregate, err := Load[S, P](ctx, u, stream)
	if err != nil {
		return aggregate.State, err
	}
	events, err := decide(aggregate.State)
	if err != nil {
		return aggregate.State, err
	}
	if len(events) > 0 {
		err = u.CheckLimits(ctx, stream.Organization, counted)
	}
	if err == nil {
		err = Append[S, P](ctx, u, &aggregate, events)
	}
	return aggregate.State, err
}

// Once is a unit of work of one decision about
// one aggregate, for those with a permission.
func Once[S any, P eventstore.Folder[S, tenants.Event]](ctx context.Context, w *Writer, request Request, permission tenants.Permission,
	stream eventstore.Stream, decide func(S) ([]tenants.Event, error)) (state S, err error) {
	return CreateOnce[S, P](ctx, w, request, permission, stream, decide, Counted{})
}

// CreateOnce is Once for something new, which counted limits; see Create.
func CreateOnce[S any, P eventstore.Folder[S, tenants.Event]](ctx context.Context, w *Writer, request Request, permission tenants.Permission,
	stream eventstore.Stream, decide func(S) ([]tenants.Event, error), counted Counted) (state S, err error) {
	u, err := w.Begin(ctx, stream.Organization, request)
	if err != nil {
		return state, err
	}
	defer u.Rollback(ctx)
	if err := u.Require(ctx, permission); err != nil {
		return state, err
	}
	if state, err = Create[S, P](ctx, u, stream, decide, counted); err != nil {
		return state, err
	}
	return state, u.Commit(ctx)
}

// Count is how many of something an organization has.
type Count func(ctx context.Context, in *query.Reader, organization pg.Organization, what tenants.Countable, now time.Time) (int, error)

// A Counted is what something new counts as; zero: nothing.
type Counted struct {
	Count Count
	As    []tenants.Countable
}

// CheckLimits is tenants.LimitReached if an organization may have no
// more of something. It counts within the unit, so that two at once
// can't both take the last place. The installation has no limits.
func (u *Unit) CheckLimits(ctx context.Context, organization string, counted Counted) error {
	if organization == tenants.Installation {
		return nil
	}
	for _, what := range counted.As {
		have, err := counted.Count(ctx, u.reader, pg.Organization(organization), what, u.Now())
		if err != nil {
			return err
		}
		if err := u.Limits.Check(what, have); err != nil {
			return err
		}
	}
	return nil
}

// Capacity is that of the caller's organization.
func (w *Writer) Capacity(ctx context.Context, caller tenants.Caller, what tenants.Countable, count Count) (tenants.Capacity, error) {
	have, err := count(ctx, w.Views, pg.Organization(caller.Organization), what, w.Now())
	return tenants.Capacity{What: what, Have: have, Limit: w.Limits.Of(what)}, err
}
