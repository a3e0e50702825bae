package unitofwork

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/tenants"
)

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
	return Projections{zero.EventName(): func(ctx context.Context, tx pgx.Tx, r Recorded) error {
		event, ok := r.Event.(E)
		if !ok {
			return fmt.Errorf("BUG: %T is called %q", r.Event, zero.EventName())
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
		project := p[r.Event.EventName()]
		if project == nil {
			return fmt.Errorf("BUG: no projection for %T", r.Event)
		}
		if err := project(ctx, tx, r); err != nil {
			return fmt.Errorf("cannot project %q version %d: %w", r.Stream, r.Version, err)
		}
	}
	return nil
}
