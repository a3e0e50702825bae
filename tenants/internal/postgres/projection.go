package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/eventstore/eventstorepg"
	"github.com/weirlog/weir/tenants"
)

// Events is the store of this module's events.
type Events = eventstorepg.Store[tenants.Event]

type recorded = eventstore.Recorded[tenants.Event]

// NewEvents returns the store: whatever it appends is projected and audited in the same transaction.
func NewEvents(pool *pgxpool.Pool) *Events {
	codec := eventstore.Codec[tenants.Event]{Encode: tenants.EncodeEvent, Decode: tenants.DecodeEvent}
	var events *Events
	events = eventstorepg.New(pool, codec, func(ctx context.Context, tx pgx.Tx, appended []recorded) error {
		if err := Project(ctx, tx, appended); err != nil {
			return err
		}
		return audit(ctx, tx, events, appended[0].Stream.Organization)
	})
	return events
}

// Project brings the tables forward by events.
func Project(ctx context.Context, tx pgx.Tx, events []recorded) error {
	for _, recorded := range events {
		if err := project(ctx, tx, recorded.Stream.Organization, recorded.Event); err != nil {
			return fmt.Errorf("cannot project %q version %d: %w", recorded.Stream, recorded.Version, err)
		}
	}
	return nil
}

func project(ctx context.Context, tx pgx.Tx, organization string, event tenants.Event) error {
	switch e := event.(type) {
	case tenants.OrganizationCreated:
		return insertOrganization(ctx, tx, e)
	case tenants.ProjectCreated:
		return insertProject(ctx, tx, e)
	case tenants.APIKeyIssued:
		return insertAPIKey(ctx, tx, e)
	case tenants.APIKeyRevoked:
		return revokeAPIKey(ctx, tx, organization, e)
	case tenants.ServiceTokenIssued:
		return insertServiceToken(ctx, tx, e)
	case tenants.ServiceTokenRevoked:
		return revokeServiceToken(ctx, tx, organization, e)
	case tenants.MemberAdded:
		return insertMember(ctx, tx, e)
	case tenants.SessionStarted, tenants.SessionEnded:
		return nil // nobody asks for sessions: those who know them know their credentials
	}
	panic(fmt.Sprintf("BUG: no projection for %T", event))
}
