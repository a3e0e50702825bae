package bus

import (
	"time"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/tenants"
)

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
		Kind: contract.CredentialSession, ID: s.ID, Organization: s.Organization, Member: s.Member,
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
