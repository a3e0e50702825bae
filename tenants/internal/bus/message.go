package bus

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	weirbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/tenants"
)

// An outgoingEvent is one message before encoding.
type outgoingEvent struct {
	topic string
	kind  string // the event type
	key   string // empty: the id of the message
	at    time.Time
	value any // nil: a tombstone
}

func organizationCreated(e tenants.OrganizationCreated) outgoingEvent {
	return fact(contract.TypeOrganizationCreated, e.At, contract.OrganizationCreated{
		Organization: e.Organization, Name: e.Name, Tier: string(e.Tier), CreatedAt: e.At,
	})
}

func projectCreated(e tenants.ProjectCreated) outgoingEvent {
	return fact(contract.TypeProjectCreated, e.At, contract.ProjectCreated{
		Organization: e.Organization, Project: e.Project, Name: e.Name, CreatedAt: e.At,
	})
}

func organizationRenamed(e tenants.OrganizationRenamed) outgoingEvent {
	return fact(contract.TypeOrganizationRenamed, e.At, contract.OrganizationRenamed{
		Organization: e.Organization, Name: e.Name, RenamedAt: e.At,
	})
}

func projectRenamed(p tenants.Project, e tenants.ProjectRenamed) outgoingEvent {
	return fact(contract.TypeProjectRenamed, e.At, contract.ProjectRenamed{
		Organization: p.Organization, Project: p.ID, Name: e.Name, RenamedAt: e.At,
	})
}

func apiKeyIssued(k tenants.APIKey) outgoingEvent {
	return fact(contract.TypeAPIKeyIssued, k.IssuedAt, contract.APIKeyIssued{
		Organization: k.Organization, Project: k.Project, APIKey: k.ID, Environment: string(k.Environment), Name: k.Name,
		IssuedAt: k.IssuedAt,
	})
}

func apiKeyChanged(k tenants.APIKey, at time.Time) outgoingEvent {
	return fact(contract.TypeAPIKeyChanged, at, contract.APIKeyChanged{
		Organization: k.Organization, Project: k.Project, APIKey: k.ID, Name: k.Name, ChangedAt: at,
	})
}

func apiKeyRevoked(k tenants.APIKey) outgoingEvent {
	return fact(contract.TypeAPIKeyRevoked, k.Revocation.At, contract.APIKeyRevoked{
		Organization: k.Organization, Project: k.Project, APIKey: k.ID, Reason: k.Revocation.Reason,
		RevokedAt: k.Revocation.At,
	})
}

func memberAdded(e tenants.MemberAdded) outgoingEvent {
	return fact(contract.TypeMemberAdded, e.At, contract.MemberAdded{
		Organization: e.Organization, Member: e.Member, Name: e.Name, Role: string(e.Role), AddedAt: e.At,
	})
}

func memberRoleChanged(organization string, e tenants.MemberRoleChanged) outgoingEvent {
	return fact(contract.TypeMemberRoleChanged, e.At, contract.MemberRoleChanged{
		Organization: organization, Member: e.Member, Role: string(e.Role), ChangedAt: e.At,
	})
}

func memberRemoved(organization string, e tenants.MemberRemoved) outgoingEvent {
	return fact(contract.TypeMemberRemoved, e.At, contract.MemberRemoved{Organization: organization, Member: e.Member, RemovedAt: e.At})
}

func webhookChanged(organization string, w tenants.Webhook, at time.Time) outgoingEvent {
	return fact(contract.TypeWebhookChanged, at, contract.WebhookChanged{
		Organization: organization, Webhook: w.ID, Host: w.Host(), Events: w.Events, On: w.On(), ChangedAt: at,
	})
}

func webhookDeleted(organization string, e tenants.WebhookDeleted) outgoingEvent {
	return fact(contract.TypeWebhookDeleted, e.At, contract.WebhookDeleted{Organization: organization, Webhook: e.Webhook, DeletedAt: e.At})
}

func deletionRequested(e tenants.DeletionRequested) outgoingEvent {
	return fact(contract.TypeDeletionRequested, e.At, contract.DeletionRequested{
		Organization: e.Organization, Project: e.Project, RequestedAt: e.At, BeginsAt: e.BeginsAt,
	})
}

func deletionCancelled(e tenants.DeletionCancelled) outgoingEvent {
	return fact(contract.TypeDeletionCancelled, e.At, contract.DeletionCancelled{
		Organization: e.Organization, Project: e.Project, CancelledAt: e.At,
	})
}

func deletionBegun(e tenants.DeletionBegun) outgoingEvent {
	return fact(contract.TypeDeletionBegun, e.At, contract.DeletionBegun{
		Organization: e.Organization, Project: e.Project, BegunAt: e.At, GoneBy: e.GoneBy,
	})
}

func deletionFinished(e tenants.DeletionFinished) outgoingEvent {
	return fact(contract.TypeDeletionFinished, e.At, contract.DeletionFinished{
		Organization: e.Organization, Project: e.Project, FinishedAt: e.At,
	})
}

// holderCredential is the state of all credentials of what
// is deleted, or was to be; a tombstone once there are none.
func holderCredential(d tenants.Deletion, version int64, at time.Time) outgoingEvent {
	event := outgoingEvent{topic: contract.TopicCredentials, kind: contract.TypeHolderChanged, key: contract.HolderKey(d.Organization, d.Project), at: at}
	value := contract.Holder{Organization: d.Organization, Project: d.Project, State: contract.CredentialRevoked, Version: version}
	switch d.State() {
	case tenants.Gone:
		return event
	case tenants.DeletionCancelledState:
		value.State = contract.CredentialActive
	}
	event.value = value
	return event
}

func fact(kind string, at time.Time, value any) outgoingEvent {
	return outgoingEvent{topic: contract.TopicTenants, kind: kind, at: at, value: value}
}

// apiKeyCredential is the key's state at a version, since
// at. Expiry is no state: consumers compare the time.
func apiKeyCredential(k tenants.APIKey, version int64, at time.Time) outgoingEvent {
	value := contract.Credential{
		Kind: contract.CredentialAPIKey, ID: k.ID, Organization: k.Organization, Project: k.Project,
		Environment: string(k.Environment), State: credentialState(k.Revocation), Version: version,
		RatePerMinute: k.RatePerMinute, Lenient: k.Lenient, Origins: k.Origins,
	}
	if k.Access != tenants.FullAccess {
		value.Access = string(k.Access)
	}
	if !k.ExpiresAt.IsZero() {
		value.ExpiresAt = &k.ExpiresAt
	}
	return outgoingEvent{topic: contract.TopicCredentials, kind: contract.TypeCredentialChanged, key: k.Digest.Hash, at: at, value: value}
}

func serviceTokenCredential(s tenants.ServiceToken, version int64) outgoingEvent {
	value := contract.Credential{
		Kind: contract.CredentialServiceToken, ID: s.ID, Organization: s.Organization, Scopes: s.Scopes,
		State: credentialState(s.Revocation), Version: version,
	}
	if s.Organization == tenants.Installation {
		value.Organization = "" // as the contract has it
	}
	return credential(s.Digest, s.IssuedAt, s.Revocation, value)
}

func credential(digest tenants.SecretDigest, issuedAt time.Time, revocation tenants.Revocation, value contract.Credential) outgoingEvent {
	at := issuedAt
	if !revocation.At.IsZero() {
		at = revocation.At
	}
	return outgoingEvent{topic: contract.TopicCredentials, kind: contract.TypeCredentialChanged, key: digest.Hash, at: at, value: value}
}

func credentialState(revocation tenants.Revocation) string {
	if revocation.At.IsZero() {
		return contract.CredentialActive
	}
	return contract.CredentialRevoked
}

// outgoing encodes what is published of one event. Ids are
// deterministic, so that consumers recognize duplicates.
func outgoing(r recorded, events ...outgoingEvent) ([]relay.Outgoing, error) {
	var messages []relay.Outgoing
	for i, event := range events {
		value, err := event.payload()
		if err != nil {
			return nil, err
		}
		id := fmt.Sprintf("%s/%d", event.kind, r.Cursor)
		if i > 0 && event.kind == events[i-1].kind { // further ones of one event
			id += fmt.Sprintf("/%d", i)
		}
		m := message.NewMessage(id, value)
		m.Metadata = event.headers(r, m.UUID)
		m.Metadata[weirbus.KeyMetadata] = cmp.Or(event.key, m.UUID)
		messages = append(messages, relay.Outgoing{Topic: event.topic, Message: m, Cursor: place(r)})
	}
	return messages, nil
}

func (e outgoingEvent) payload() ([]byte, error) {
	if e.value == nil {
		return nil, nil
	}
	value, err := json.Marshal(e.value)
	if err != nil {
		return nil, fmt.Errorf("cannot encode %s: %w", e.kind, err)
	}
	return value, nil
}

// place is an event's position in the outbox.
func place(r recorded) relay.Cursor { return relay.Cursor{Position: int64(r.Cursor)} }

func (e outgoingEvent) headers(r recorded, id string) map[string]string {
	attributes := contract.Attributes{ID: id, Type: e.kind, Source: Source, Time: e.at}
	if r.Stream.Organization != tenants.Installation {
		attributes.Organization = r.Stream.Organization
	}
	return attributes.Headers()
}

// sessionCredentials are those of a session's secret, the previous
// one, which works during its overlap, and the dropped one.
func sessionCredentials(s tenants.Session, version int64) []outgoingEvent {
	now, at := sessionCredential(s, version), s.StartedAt
	if !s.ChangedAt.IsZero() {
		at = s.ChangedAt
	}
	now.ExpiresAt, now.RenewAt = &s.ExpiresAt, optional(s.RenewAt())
	held := []outgoingEvent{credential(s.Digest, at, s.Revocation, now)}
	if s.Replaced.Digest != (tenants.SecretDigest{}) {
		held = append(held, credential(s.Replaced.Digest, at, s.Revocation, replacedCredential(s, version)))
	}
	if s.Dropped != (tenants.SecretDigest{}) {
		dropped := sessionCredential(s, version)
		dropped.State, dropped.ExpiresAt = contract.CredentialRevoked, &s.ExpiresAt
		held = append(held, credential(s.Dropped, at, s.Revocation, dropped))
	}
	return held
}

// replacedCredential is that of the previous secret. If the
// newer one is derived from it, its holder has to renew.
func replacedCredential(s tenants.Session, version int64) contract.Credential {
	replaced := sessionCredential(s, version)
	replaced.ExpiresAt = &s.Replaced.Until
	if s.Replaced.Salt != "" {
		replaced.RenewAt = &s.RenewedAt
	} else {
		replaced.AuthenticatedAt = nil // the proof was for the newer one
	}
	return replaced
}

func sessionCredential(s tenants.Session, version int64) contract.Credential {
	return contract.Credential{
		Kind: contract.CredentialSession, ID: s.ID, Organization: s.Organization, Member: s.Member, Name: s.Name,
		Scopes: []string{identity.RoleScope(string(s.Role))}, State: credentialState(s.Revocation),
		AuthenticatedAt: optional(s.AuthenticatedAt), Version: version,
	}
}

// optional is nil for the zero time.
func optional(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}
