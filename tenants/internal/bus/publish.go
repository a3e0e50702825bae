package bus

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	weirbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/eventstore/eventstorepg"
	"github.com/weirlog/weir/tenants"
)

// RelayName names the relay's cursor. It is stored.
const RelayName = "tenants"

// Source is the ce_source of what tenants publishes.
const Source = "weir/tenants"

// maxMessages is the most messages of one event: a session has three
// credentials, a key one and a fact; both may have two deleted holders.
const maxMessages = 5

// A Publication maps events to messages: the state
// of credentials, and facts, each on its own topic.
type Publication struct {
	events *events
}

// NewPublication returns the publication of a store's events.
func NewPublication(store *events) *Publication {
	return &Publication{events: store}
}

// Read is the relay's source: at most limit messages of the
// events after a cursor. The table of events is the outbox.
func (p *Publication) Read(ctx context.Context, tx pgx.Tx, after relay.Cursor, limit int) ([]relay.Outgoing, error) {
	events, err := p.events.ReadAll(ctx, tx, eventstore.Cursor(after.Position), max(1, limit/maxMessages))
	if err != nil {
		return nil, err
	}
	var messages []relay.Outgoing
	for _, event := range events {
		published, err := p.publish(ctx, tx, event)
		if err != nil {
			return nil, fmt.Errorf("cannot publish %q version %d: %w", event.Stream, event.Version, err)
		}
		messages = append(messages, published...)
	}
	return messages, nil
}

type (
	events   = eventstorepg.Store[tenants.Event]
	recorded = eventstore.Recorded[tenants.Event]
)

// publish returns the messages of one event.
func (p *Publication) publish(ctx context.Context, tx pgx.Tx, r recorded) ([]relay.Outgoing, error) {
	if r.Unknown || tenants.PublicationOf(r.Event) == tenants.Unpublished {
		return skip(r), nil
	}
	history, err := p.history(ctx, tx, r)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(history, func(each recorded) bool { return each.Version == r.Version })
	if at < 0 {
		return skip(r), nil // erased meanwhile
	}
	if tenants.PublicationOf(r.Event) == tenants.PublishedCredential {
		return p.currentMessages(ctx, tx, history, at)
	}
	return published(r, history[:at+1])
}

// published are the messages of the last event of a
// history, credentials first, as a request waits for them.
func published(r recorded, history []recorded) ([]relay.Outgoing, error) {
	now := subject(history)
	messages := facts(r.Stream.Organization, r.Event, now)
	if tenants.PublicationOf(r.Event) == tenants.PublishedCredential {
		messages = append(credentials(r, now), messages...)
	}
	if len(messages) == 0 {
		return nil, fmt.Errorf("BUG: nothing is published of %T", r.Event)
	}
	return outgoing(r, messages...)
}

func credentials(r recorded, subject tenants.Subject) []outgoingEvent {
	switch s := subject.(type) {
	case *tenants.APIKey:
		return []outgoingEvent{apiKeyCredential(*s, r.Version, tenants.At(r.Event))}
	case *tenants.ServiceToken:
		return []outgoingEvent{serviceTokenCredential(*s, r.Version)}
	case *tenants.Session:
		return sessionCredentials(*s, r.Version)
	case *tenants.Deletion:
		return []outgoingEvent{holderCredential(*s, r.Version, tenants.At(r.Event))}
	}
	return nil
}

// facts are the messages on weir.tenants.v1 of an event of an organization.
func facts(organization string, event tenants.Event, subject tenants.Subject) []outgoingEvent {
	switch e := event.(type) {
	case tenants.OrganizationCreated:
		return []outgoingEvent{organizationCreated(e)}
	case tenants.OrganizationRenamed:
		return []outgoingEvent{organizationRenamed(e)}
	case tenants.ProjectCreated:
		return []outgoingEvent{projectCreated(e)}
	case tenants.ProjectRenamed:
		return []outgoingEvent{projectRenamed(*subject.(*tenants.Project), e)}
	case tenants.MemberAdded:
		return []outgoingEvent{memberAdded(e)}
	case tenants.MemberRoleChanged:
		return []outgoingEvent{memberRoleChanged(organization, e)}
	case tenants.MemberRemoved:
		return []outgoingEvent{memberRemoved(organization, e)}
	case tenants.WebhookCreated, tenants.WebhookChanged, tenants.WebhookSwitched:
		return []outgoingEvent{webhookChanged(organization, *subject.(*tenants.Webhook), tenants.At(e))}
	case tenants.WebhookDeleted:
		return []outgoingEvent{webhookDeleted(organization, e)}
	case tenants.DeletionRequested:
		return []outgoingEvent{deletionRequested(e)}
	case tenants.DeletionCancelled:
		return []outgoingEvent{deletionCancelled(e)}
	case tenants.DeletionBegun:
		return []outgoingEvent{deletionBegun(e)}
	case tenants.DeletionFinished:
		return []outgoingEvent{deletionFinished(e)}
	case tenants.APIKeyIssued:
		return []outgoingEvent{apiKeyIssued(*subject.(*tenants.APIKey))}
	case tenants.APIKeyChanged:
		return []outgoingEvent{apiKeyChanged(*subject.(*tenants.APIKey), e.At)}
	case tenants.APIKeyRevoked:
		return []outgoingEvent{apiKeyRevoked(*subject.(*tenants.APIKey))}
	}
	return nil
}

// skip moves the cursor past an event without messages.
func skip(r recorded) []relay.Outgoing { return []relay.Outgoing{{Cursor: place(r)}} }

// history returns an event's stream up to its end, as an event
// alone is no state. The first of a stream is, if it is a fact.
func (p *Publication) history(ctx context.Context, tx pgx.Tx, r recorded) ([]recorded, error) {
	if r.Version == 1 && tenants.PublicationOf(r.Event) == tenants.PublishedFact {
		return []recorded{r}, nil
	}
	return p.events.ReadOutwardTx(ctx, tx, r.Stream)
}

// currentMessages are the messages of the event at a place of its
// stream. Credentials have their newest state, not that of the event: if
// history is published again, a revoked key must not be in force until
// its revocation follows. One without a row was forgotten, and stays so.
func (p *Publication) currentMessages(ctx context.Context, tx pgx.Tx, history []recorded, at int) ([]relay.Outgoing, error) {
	r := history[at]
	messages, err := published(r, history[:at+1])
	if err != nil {
		return nil, err
	}
	newest, err := newestCredentials(history, at)
	if err != nil {
		return nil, err
	}
	kept, err := hasRow(ctx, tx, r, history)
	if err != nil {
		return nil, err
	}
	for i, m := range messages {
		key := m.Message.Metadata[weirbus.KeyMetadata]
		switch {
		case m.Topic != contract.TopicCredentials:
		case !kept:
			messages[i] = tombstone(r, tenants.At(r.Event), key, i+1)
		default:
			messages[i].Message = newest[key].Message
		}
	}
	holders, err := p.deletedHolders(ctx, tx, r, history)
	return append(holders, messages...), err
}

// newestCredentials are the messages of the last events
// of a stream, from one on, that changed each credential.
func newestCredentials(history []recorded, from int) (map[string]relay.Outgoing, error) {
	newest := map[string]relay.Outgoing{}
	for i := from; i < len(history); i++ {
		if tenants.PublicationOf(history[i].Event) != tenants.PublishedCredential {
			continue
		}
		messages, err := published(history[i], history[:i+1])
		if err != nil {
			return nil, err
		}
		for _, m := range messages {
			if m.Topic == contract.TopicCredentials {
				newest[m.Message.Metadata[weirbus.KeyMetadata]] = m
			}
		}
	}
	return newest, nil
}

// hasRow reports whether the thing of a stream has a row.
func hasRow(ctx context.Context, tx pgx.Tx, r recorded, history []recorded) (kept bool, err error) {
	var row, id string
	switch s := subject(history).(type) {
	case *tenants.APIKey:
		row, id = `SELECT FROM api_keys WHERE organization = $1 AND id = $2`, s.ID
	case *tenants.ServiceToken:
		row, id = `SELECT FROM service_tokens WHERE organization = $1 AND id = $2`, s.ID
	case *tenants.Session:
		row, id = `SELECT FROM sessions WHERE organization = $1 AND id = $2`, s.ID
	default:
		return true, nil
	}
	err = tx.QueryRow(ctx, `SELECT EXISTS (`+row+`)`, r.Stream.Organization, id).Scan(&kept)
	if err != nil {
		return false, fmt.Errorf("cannot find whether %q is kept: %w", r.Stream, err)
	}
	return kept, nil
}

// DeletionStreams begins the names of deletions' streams.
const DeletionStreams = "deletion/"

// deletedHolders are the states of organization and project that
// are deleted: on a new topic they must precede what they hold.
func (p *Publication) deletedHolders(ctx context.Context, tx pgx.Tx, r recorded, history []recorded) (messages []relay.Outgoing, err error) {
	project := ""
	switch s := subject(history).(type) {
	case *tenants.Deletion:
		return nil, nil
	case *tenants.APIKey:
		project = s.Project
	}
	rows, err := tx.Query(ctx, `SELECT id FROM deletions WHERE organization = $1 AND id IN ($1, $2) AND state <> 'cancelled' ORDER BY id`,
		r.Stream.Organization, project)
	if err != nil {
		return nil, err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("cannot find what is deleted of %q: %w", r.Stream.Organization, err)
	}
	for _, id := range ids {
		deletion, err := p.events.ReadOutwardTx(ctx, tx, eventstore.Stream{Organization: r.Stream.Organization, Name: DeletionStreams + id})
		if err != nil {
			return nil, err
		}
		newest, err := newestCredentials(deletion, 0)
		if err != nil {
			return nil, err
		}
		for _, m := range newest {
			m.Cursor = place(r)
			messages = append(messages, m)
		}
	}
	return messages, nil
}

// subject is the state after a history.
func subject(history []recorded) tenants.Subject {
	events := make([]tenants.Event, len(history))
	for i, each := range history {
		events[i] = each.Event
	}
	return tenants.Fold(events...)
}
