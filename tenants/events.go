package tenants

import (
	"encoding/json"
	"fmt"
	"time"
)

// An Event is something that happened. The set is closed: what has no name in this file can't happen.
type Event interface {
	isEvent()
}

// OrganizationCreated starts an organization.
type OrganizationCreated struct {
	Organization string    `json:"organization"`
	Name         string    `json:"name"`
	Tier         Tier      `json:"tier"`
	At           time.Time `json:"at"`
}

// ProjectCreated starts a project.
type ProjectCreated struct {
	Project      string    `json:"project"`
	Organization string    `json:"organization"`
	Name         string    `json:"name"`
	At           time.Time `json:"at"`
}

// APIKeyIssued starts an API key.
type APIKeyIssued struct {
	APIKey       string       `json:"api_key"`
	Organization string       `json:"organization"`
	Project      string       `json:"project"`
	Environment  Environment  `json:"environment"`
	Name         string       `json:"name"`
	Digest       SecretDigest `json:"imprint"`
	At           time.Time    `json:"at"`
	ExpiresAt    *time.Time   `json:"expires_at,omitempty"`

	RatePerMinute int    `json:"rate_per_minute,omitempty"` // 0: no limit of its own
	Replaces      string `json:"replaces,omitempty"`        // id of the key whose place it takes
	Access        Access `json:"access,omitempty"`          // absent: full
}

// APIKeyRevoked ends an API key.
type APIKeyRevoked struct {
	APIKey string    `json:"api_key"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// ServiceTokenIssued starts a service token.
type ServiceTokenIssued struct {
	ServiceToken string       `json:"service_token"`
	Organization string       `json:"organization"`
	Name         string       `json:"name"`
	Scopes       []string     `json:"scopes"`
	Digest       SecretDigest `json:"imprint"`
	Configured   bool         `json:"configured,omitempty"`
	At           time.Time    `json:"at"`
}

// ServiceTokenRevoked ends a service token.
type ServiceTokenRevoked struct {
	ServiceToken string    `json:"service_token"`
	Reason       string    `json:"reason"`
	At           time.Time `json:"at"`
}

func (OrganizationCreated) isEvent()   {}
func (OrganizationRenamed) isEvent()   {}
func (ProjectCreated) isEvent()        {}
func (ProjectRenamed) isEvent()        {}
func (APIKeyIssued) isEvent()          {}
func (APIKeyRevoked) isEvent()         {}
func (ServiceTokenIssued) isEvent()    {}
func (ServiceTokenRevoked) isEvent()   {}
func (MemberAdded) isEvent()           {}
func (MemberRoleChanged) isEvent()     {}
func (MemberRemoved) isEvent()         {}
func (MemberResetCodeIssued) isEvent() {}
func (MemberIdentified) isEvent()      {}
func (MemberPasswordChanged) isEvent() {}
func (InvitationMade) isEvent()        {}
func (InvitationResent) isEvent()      {}
func (InvitationRevoked) isEvent()     {}
func (InvitationAccepted) isEvent()    {}
func (OwnerCodeIssued) isEvent()       {}
func (OwnerCodeUsed) isEvent()         {}
func (SessionStarted) isEvent()        {}
func (SessionEnded) isEvent()          {}
func (SessionRoleChanged) isEvent()    {}
func (SessionRenewed) isEvent()        {}
func (SessionConfirmed) isEvent()      {}
func (PasskeyRegistered) isEvent()     {}
func (PasskeyUsed) isEvent()           {}
func (PasskeySuspected) isEvent()      {}
func (PasskeyRemoved) isEvent()        {}
func (MemberSignInsFailed) isEvent()   {}

// Names under which events are stored. They are data: never renamed, and a form that changes gets a new version.
const (
	nameOrganizationCreated   = "tenants.v1.organization_created"
	nameOrganizationRenamed   = "tenants.v1.organization_renamed"
	nameProjectCreated        = "tenants.v1.project_created"
	nameProjectRenamed        = "tenants.v1.project_renamed"
	nameAPIKeyIssued          = "tenants.v1.api_key_issued"
	nameAPIKeyRevoked         = "tenants.v1.api_key_revoked"
	nameServiceTokenIssued    = "tenants.v1.service_token_issued"
	nameServiceTokenRevoked   = "tenants.v1.service_token_revoked"
	nameMemberAdded           = "tenants.v1.member_added"
	nameMemberRoleChanged     = "tenants.v1.member_role_changed"
	nameMemberRemoved         = "tenants.v1.member_removed"
	nameMemberResetCodeIssued = "tenants.v1.member_reset_code_issued"
	nameMemberIdentified      = "tenants.v1.member_identified"
	nameMemberPasswordChanged = "tenants.v1.member_password_changed"
	nameInvitationMade        = "tenants.v1.invitation_made"
	nameInvitationResent      = "tenants.v1.invitation_resent"
	nameInvitationRevoked     = "tenants.v1.invitation_revoked"
	nameInvitationAccepted    = "tenants.v1.invitation_accepted"
	nameOwnerCodeIssued       = "tenants.v1.owner_code_issued"
	nameOwnerCodeUsed         = "tenants.v1.owner_code_used"
	nameSessionStarted        = "tenants.v1.session_started"
	nameSessionEnded          = "tenants.v1.session_ended"
	nameSessionRenewed        = "tenants.v1.session_renewed"
	nameSessionConfirmed      = "tenants.v1.session_confirmed"
	nameSessionRoleChanged    = "tenants.v1.session_role_changed"
	nameAPIKeyRotated         = "tenants.v1.api_key_rotated"
	nameAPIKeyRenamed         = "tenants.v1.api_key_renamed"
	nameAPIKeyLimited         = "tenants.v1.api_key_limited"
	nameAPIKeyAccessChanged   = "tenants.v1.api_key_access_changed"
	nameAPIKeyExposed         = "tenants.v1.api_key_exposed"
	nameAPIKeyCurtailed       = "tenants.v1.api_key_curtailed"
	nameSecurityPolicySet     = "tenants.v1.security_policy_set"
	namePasskeyRegistered     = "tenants.v1.passkey_registered"
	namePasskeyUsed           = "tenants.v1.passkey_used"
	namePasskeySuspected      = "tenants.v1.passkey_suspected"
	namePasskeyRemoved        = "tenants.v1.passkey_removed"
	nameMemberSignInsFailed   = "tenants.v1.member_sign_ins_failed"
)

// EncodeEvent returns the stored form of an event.
func EncodeEvent(event Event) (name string, data []byte, err error) {
	if name, err = eventName(event); err != nil {
		return "", nil, err
	}
	data, err = json.Marshal(event)
	return name, data, err
}

func eventName(event Event) (string, error) { //nolint:funlen // two lines for each event of the closed set
	switch event.(type) {
	case OrganizationCreated:
		return nameOrganizationCreated, nil
	case OrganizationRenamed:
		return nameOrganizationRenamed, nil
	case ProjectCreated:
		return nameProjectCreated, nil
	case ProjectRenamed:
		return nameProjectRenamed, nil
	case APIKeyIssued:
		return nameAPIKeyIssued, nil
	case APIKeyRevoked:
		return nameAPIKeyRevoked, nil
	case APIKeyRotated:
		return nameAPIKeyRotated, nil
	case APIKeyRenamed:
		return nameAPIKeyRenamed, nil
	case APIKeyLimited:
		return nameAPIKeyLimited, nil
	case APIKeyAccessChanged:
		return nameAPIKeyAccessChanged, nil
	case APIKeyExposed:
		return nameAPIKeyExposed, nil
	case APIKeyCurtailed:
		return nameAPIKeyCurtailed, nil
	case SecurityPolicySet:
		return nameSecurityPolicySet, nil
	case ServiceTokenIssued:
		return nameServiceTokenIssued, nil
	case ServiceTokenRevoked:
		return nameServiceTokenRevoked, nil
	case MemberAdded:
		return nameMemberAdded, nil
	case MemberRoleChanged:
		return nameMemberRoleChanged, nil
	case MemberRemoved:
		return nameMemberRemoved, nil
	case MemberResetCodeIssued:
		return nameMemberResetCodeIssued, nil
	case MemberIdentified:
		return nameMemberIdentified, nil
	case MemberPasswordChanged:
		return nameMemberPasswordChanged, nil
	case InvitationMade:
		return nameInvitationMade, nil
	case InvitationResent:
		return nameInvitationResent, nil
	case InvitationRevoked:
		return nameInvitationRevoked, nil
	case InvitationAccepted:
		return nameInvitationAccepted, nil
	case OwnerCodeIssued:
		return nameOwnerCodeIssued, nil
	case OwnerCodeUsed:
		return nameOwnerCodeUsed, nil
	case SessionStarted:
		return nameSessionStarted, nil
	case SessionRenewed:
		return nameSessionRenewed, nil
	case SessionConfirmed:
		return nameSessionConfirmed, nil
	case SessionEnded:
		return nameSessionEnded, nil
	case SessionRoleChanged:
		return nameSessionRoleChanged, nil
	case PasskeyRegistered:
		return namePasskeyRegistered, nil
	case PasskeyUsed:
		return namePasskeyUsed, nil
	case PasskeySuspected:
		return namePasskeySuspected, nil
	case PasskeyRemoved:
		return namePasskeyRemoved, nil
	case MemberSignInsFailed:
		return nameMemberSignInsFailed, nil
	}
	return "", fmt.Errorf("cannot name event %T", event)
}

// DecodeEvent reads a stored event back, of whatever version, in its newest form.
func DecodeEvent(name string, data []byte) (Event, error) { //nolint:funlen // two lines for each event of the closed set
	switch name {
	case nameOrganizationCreated:
		return decode[OrganizationCreated](data)
	case nameOrganizationRenamed:
		return decode[OrganizationRenamed](data)
	case nameProjectCreated:
		return decode[ProjectCreated](data)
	case nameProjectRenamed:
		return decode[ProjectRenamed](data)
	case nameAPIKeyIssued:
		return decode[APIKeyIssued](data)
	case nameAPIKeyRevoked:
		return decode[APIKeyRevoked](data)
	case nameAPIKeyRotated:
		return decode[APIKeyRotated](data)
	case nameAPIKeyRenamed:
		return decode[APIKeyRenamed](data)
	case nameAPIKeyLimited:
		return decode[APIKeyLimited](data)
	case nameAPIKeyAccessChanged:
		return decode[APIKeyAccessChanged](data)
	case nameAPIKeyExposed:
		return decode[APIKeyExposed](data)
	case nameAPIKeyCurtailed:
		return decode[APIKeyCurtailed](data)
	case nameSecurityPolicySet:
		return decode[SecurityPolicySet](data)
	case nameServiceTokenIssued:
		return decode[ServiceTokenIssued](data)
	case nameServiceTokenRevoked:
		return decode[ServiceTokenRevoked](data)
	case nameMemberAdded:
		return decode[MemberAdded](data)
	case nameMemberRoleChanged:
		return decode[MemberRoleChanged](data)
	case nameMemberRemoved:
		return decode[MemberRemoved](data)
	case nameMemberResetCodeIssued:
		return decode[MemberResetCodeIssued](data)
	case nameMemberIdentified:
		return decode[MemberIdentified](data)
	case nameMemberPasswordChanged:
		return decode[MemberPasswordChanged](data)
	case nameInvitationMade:
		return decode[InvitationMade](data)
	case nameInvitationResent:
		return decode[InvitationResent](data)
	case nameInvitationRevoked:
		return decode[InvitationRevoked](data)
	case nameInvitationAccepted:
		return decode[InvitationAccepted](data)
	case nameOwnerCodeIssued:
		return decode[OwnerCodeIssued](data)
	case nameOwnerCodeUsed:
		return decode[OwnerCodeUsed](data)
	case nameSessionStarted:
		return decode[SessionStarted](data)
	case nameSessionRenewed:
		return decode[SessionRenewed](data)
	case nameSessionConfirmed:
		return decode[SessionConfirmed](data)
	case nameSessionEnded:
		return decode[SessionEnded](data)
	case nameSessionRoleChanged:
		return decode[SessionRoleChanged](data)
	case namePasskeyRegistered:
		return decode[PasskeyRegistered](data)
	case namePasskeyUsed:
		return decode[PasskeyUsed](data)
	case namePasskeySuspected:
		return decode[PasskeySuspected](data)
	case namePasskeyRemoved:
		return decode[PasskeyRemoved](data)
	case nameMemberSignInsFailed:
		return decode[MemberSignInsFailed](data)
	}
	return nil, fmt.Errorf("cannot decode event %q: its name is unknown", name)
}

func decode[E Event](data []byte) (Event, error) {
	var event E
	if err := json.Unmarshal(data, &event); err != nil {
		return nil, err
	}
	return event, nil
}
