package unitofwork

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/eventstore/eventstorepg"
	"github.com/weirlog/weir/tenants"
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
		Private: func(event tenants.Event) bool { return event.Publication() == tenants.Unpublished },
	}
}

// Stream names the stream of one thing that changes as a whole.
func Stream(organization, noun, id string) eventstore.Stream {
	return eventstore.Stream{Organization: organization, Name: noun + "/" + id}
}
