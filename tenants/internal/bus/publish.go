package bus

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	weirbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/postgres"
)

// RelayName is under which name the relay keeps how far it has published. It is data.
const RelayName = "tenants"

// Source is the ce_source of what tenants says.
const Source = "weir/tenants"

// perEvent is the most messages that one event becomes.
const perEvent = 3

// A Publication maps what was decided to what others are told: the state of credentials, and facts. It is the one place
// where the two meet.
type Publication struct {
	events *postgres.Events
}

// NewPublication returns a publication of events.
func NewPublication(events *postgres.Events) *Publication {
	return &Publication{events: events}
}

// Read is the relay's source: at most limit messages about the events after a cursor. The table of events is the outbox.
func (p *Publication) Read(ctx context.Context, tx pgx.Tx, after weirbus.Cursor, limit int) ([]weirbus.Outgoing, error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return nil, err
	}
	events, err := p.events.ReadAll(ctx, tx, eventstore.Cursor(after.Position), max(1, limit/perEvent))
	if err != nil {
		return nil, err
	}
	var messages []weirbus.Outgoing
	for _, event := range events {
		told, err := p.tell(ctx, tx, event)
		if err != nil {
			return nil, fmt.Errorf("cannot publish %q version %d: %w", event.Stream, event.Version, err)
		}
		messages = append(messages, told...)
	}
	return messages, nil
}

type recorded = eventstore.Recorded[tenants.Event]

// tell says what others are told of one event. A credential goes before the fact: it is what somebody waits for.
func (p *Publication) tell(ctx context.Context, tx pgx.Tx, r recorded) ([]weirbus.Outgoing, error) {
	if isSilent(r.Event) {
		return silence(r), nil
	}
	history, err := p.until(ctx, tx, r)
	if err != nil {
		return nil, err
	}
	switch e := r.Event.(type) {
	case tenants.OrganizationCreated:
		return outgoing(r, organizationCreated(e))
	case tenants.OrganizationRenamed:
		return outgoing(r, organizationRenamed(e))
	case tenants.ProjectCreated:
		return outgoing(r, projectCreated(e))
	case tenants.ProjectRenamed:
		return outgoing(r, projectRenamed(eventstore.Fold[tenants.Project](history), e))
	case tenants.APIKeyIssued:
		key := eventstore.Fold[tenants.APIKey](history)
		return outgoing(r, apiKeyCredential(key, r.Version, e.At), apiKeyIssued(key))
	case tenants.APIKeyRevoked:
		key := eventstore.Fold[tenants.APIKey](history)
		return outgoing(r, apiKeyCredential(key, r.Version, e.At), apiKeyRevoked(key))
	case tenants.APIKeyRotated:
		return outgoing(r, apiKeyCredential(eventstore.Fold[tenants.APIKey](history), r.Version, e.At))
	case tenants.APIKeyCurtailed:
		return outgoing(r, apiKeyCredential(eventstore.Fold[tenants.APIKey](history), r.Version, e.At))
	case tenants.APIKeyAccessChanged:
		return outgoing(r, apiKeyCredential(eventstore.Fold[tenants.APIKey](history), r.Version, e.At))
	case tenants.APIKeyLimited:
		return outgoing(r, apiKeyCredential(eventstore.Fold[tenants.APIKey](history), r.Version, e.At))
	case tenants.ServiceTokenIssued, tenants.ServiceTokenRevoked:
		token := eventstore.Fold[tenants.ServiceToken](history)
		return outgoing(r, serviceTokenCredential(token, r.Version))
	case tenants.SessionStarted, tenants.SessionRoleChanged, tenants.SessionRenewed, tenants.SessionConfirmed, tenants.SessionEnded:
		session := eventstore.Fold[tenants.Session](history)
		return outgoing(r, sessionCredentials(session, r.Version)...)
	}
	return nil, fmt.Errorf("event %T is told to nobody", r.Event)
}

// isSilent tells whether an event is nobody else's business: people and what is kept of how they prove who they are, names
// of keys and what happened to them.
func isSilent(event tenants.Event) bool {
	switch event.(type) {
	case tenants.APIKeyRenamed, tenants.APIKeyExposed, tenants.SecurityPolicySet, tenants.MemberSignInsFailed,
		tenants.MemberAdded, tenants.MemberRoleChanged, tenants.MemberRemoved, tenants.MemberPasswordChanged,
		tenants.MemberResetCodeIssued, tenants.MemberIdentified, tenants.InvitationMade, tenants.InvitationResent,
		tenants.InvitationRevoked, tenants.InvitationAccepted, tenants.OwnerCodeIssued, tenants.OwnerCodeUsed,
		tenants.PasskeyRegistered, tenants.PasskeyUsed, tenants.PasskeySuspected, tenants.PasskeyRemoved:
		return true
	}
	return false
}

// silence tells nobody of an event, and that it is done with.
func silence(r recorded) []weirbus.Outgoing { return []weirbus.Outgoing{{Cursor: place(r)}} }

// until returns the history of an event's stream up to that event: an event alone is no whole state.
func (p *Publication) until(ctx context.Context, tx pgx.Tx, r recorded) ([]recorded, error) {
	if r.Version == 1 {
		return []recorded{r}, nil
	}
	history, err := p.events.ReadTx(ctx, tx, r.Stream)
	if err != nil {
		return nil, err
	}
	return history[:r.Version], nil
}
