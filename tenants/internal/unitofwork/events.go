package unitofwork

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/eventstore/eventstorepg"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/query"
)

// Events is the store of this module's events.
type Events = eventstorepg.Store[tenants.Event]

// Recorded is a stored event.
type Recorded = eventstore.Recorded[tenants.Event]

// Audit writes the lines of an organization's audit up to
// its newest event, in the transaction that appended it.
type Audit func(ctx context.Context, tx pgx.Tx, events *Events, organization string) error

// NewEvents returns the store: appended events are
// projected and audited in the same transaction.
func NewEvents(pool *pgxpool.Pool, projections Projections, audit Audit) *Events {
	var events *Events
	events = eventstorepg.New(pool, Codec(), func(ctx context.Context, tx pgx.Tx, appended []Recorded) error {
		if err := projections.Apply(ctx, tx, appended); err != nil {
			return err
		}
		return audit(ctx, tx, events, appended[0].Stream.Organization)
	})
	return events
}

// Codec encodes this module's events.
func Codec() eventstore.Codec[tenants.Event] {
	return eventstore.Codec[tenants.Event]{
		Encode: tenants.EncodeEvent, Decode: tenants.DecodeEvent, Knows: tenants.CanDecode,
		Private: func(event tenants.Event) bool { return tenants.PublicationOf(event) == tenants.Unpublished },
	}
}

// Stream names the stream of one thing that changes as a whole.
func Stream(organization, noun, id string) eventstore.Stream {
	return eventstore.Stream{Organization: organization, Name: noun + "/" + id}
}

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

// EventContext is what projectors need beside an event.
type EventContext struct {
	Organization string // of the event's stream
	Origin       tenants.Origin
}

// A Projector applies one event to a table,
// in the transaction that appends it.
type Projector func(ctx context.Context, tx pgx.Tx, r Recorded) error

// Projections are projectors by name of event.
type Projections map[string]Projector

// On projects events of one type.
func On[E tenants.Event](project func(ctx context.Context, tx pgx.Tx, at EventContext, e E) error) Projections {
	var zero E
	return Projections{tenants.EventName(zero): func(ctx context.Context, tx pgx.Tx, r Recorded) error {
		event, ok := r.Event.(E)
		if !ok {
			return fmt.Errorf("BUG: %T is called %q", r.Event, tenants.EventName(zero))
		}
		return project(ctx, tx, EventContext{r.Stream.Organization, tenants.OriginOf(r.Metadata)}, event)
	}}
}

// Unprojected means that no table shows events of one type.
func Unprojected[E tenants.Event]() Projections {
	return On(func(context.Context, pgx.Tx, EventContext, E) error { return nil })
}

// Join joins projections. It panics for an event in two of them.
func Join(several ...Projections) Projections {
	all := Projections{}
	for _, projections := range several {
		for name, projector := range projections {
			if all[name] != nil {
				panic("BUG: there are two projections of " + name)
			}
			all[name] = projector
		}
	}
	return all
}

// Apply applies events to the tables.
func (p Projections) Apply(ctx context.Context, tx pgx.Tx, events []Recorded) error {
	for _, r := range events {
		project := p[tenants.EventName(r.Event)]
		if project == nil {
			return fmt.Errorf("BUG: no projection for %T", r.Event)
		}
		if err := project(ctx, tx, r); err != nil {
			return fmt.Errorf("cannot project %q version %d: %w", r.Stream, r.Version, err)
		}
	}
	return nil
}
